/**
 * Keeps the replicas of this node's shards equal to those of their peers (docs/architecture.md#anti-entropy). A node
 * pushes changes soon after writes, when a link to a peer opens, and periodically; it pulls changes after an absence;
 * and it compares digests at long intervals.
 */
import { shardKey, type PeerIdentity, type ShardId } from '@sectional/core'
import type { Runtime, Timer } from '@sectional/runtime'
import type { ControlPlane } from '../control/control-plane.ts'
import type { ClusterState, DatabaseRecord } from '../control/cluster-state.ts'
import { databaseOn } from '../control/shard-inventory.ts'
import type { ReplicaDirectory } from '../replicas/replica-directory.ts'
import { defaultAntiEntropyOptions } from './anti-entropy-options.ts'
import type { AntiEntropyOptions } from './anti-entropy-options.ts'
import { AntiEntropyMetrics } from './anti-entropy-metrics.ts'
import { CatchUp } from './catch-up.ts'
import { HostedShards } from './hosted-shards.ts'
import type { HostedShard } from './hosted-shards.ts'
import type { LocalReplicas } from '../replicas/local-replicas.ts'
import { MissedNotices } from './missed-notices.ts'
import { PushSchedule } from './push-schedule.ts'
import { Refills } from './refills.ts'
import type { RefillTask } from './refills.ts'
import { ReplicaRepair } from './replica-repair.ts'
import { SlicedRound } from './sliced-round.ts'
import { SyncPasses } from './sync-passes.ts'
import { SyncQueue } from './sync-queue.ts'

export interface AntiEntropyParts {
  readonly runtime: Runtime
  readonly control: Pick<ControlPlane, 'node' | 'state' | 'onChange' | 'replicaFilled' | 'replicaDamaged'>
  readonly replicas: ReplicaDirectory
  readonly local: LocalReplicas
  /** Reports when links open and close (`PeerNetwork.onChange`). */
  readonly peers: { onChange(listener: (peer: Pick<PeerIdentity, 'node'>, up: boolean) => void): () => void }
  readonly options?: Partial<AntiEntropyOptions>
}

/**
 * Milliseconds between checks for due pushes while any are waiting, and for replicas of new shards that are not open
 * yet.
 */
const tickMs = 500

export class AntiEntropy {
  readonly #parts: AntiEntropyParts
  readonly #options: AntiEntropyOptions
  readonly #shards: HostedShards
  readonly #schedule: PushSchedule
  readonly #refills: Refills
  readonly #passes: SyncPasses
  readonly #queue: SyncQueue
  readonly #catchUp: CatchUp
  readonly #repair: ReplicaRepair
  readonly #notices: MissedNotices
  readonly #abort = new AbortController()
  readonly #unsubscribe: (() => void)[] = []
  /** Keys of shards that the cluster state places on this node and whose replicas are not open yet. */
  readonly #awaited = new Set<string>()
  /** Shards that were on this node's disk when it started. They may have missed writes. */
  readonly #inherited = new Map<string, ShardId>()
  /** Reports of filled replicas whose outcome is not known yet, by shard. None rejects. */
  readonly #filledReports = new Map<string, Promise<void>>()
  #tickTimer: Timer | undefined
  #periodicTimer: Timer | undefined
  #digestTimer: Timer | undefined
  #catchUpTimer: Timer | undefined
  readonly #periodicRound: SlicedRound
  /** The shards that are still to be compared by digests in this round. */
  #digestRound: Iterator<HostedShard> | undefined
  #running = false

  constructor(parts: AntiEntropyParts) {
    const { runtime, control, replicas, local } = parts
    this.#parts = parts
    this.#options = { ...defaultAntiEntropyOptions, ...parts.options }
    this.#shards = new HostedShards(control.node)
    this.#schedule = new PushSchedule(this.#options)
    const filling = (): number => this.#shards.filling()
    this.#refills = new Refills({ clock: runtime.clock, log: runtime.log, filling })
    const metrics = new AntiEntropyMetrics(runtime.metrics, {
      filling, refillLeft: () => this.#refills.changesLeft,
      jobs: () => this.jobs, declining: () => this.#catchUp.declining,
      lag: () => this.#schedule.lag(runtime.clock.monotonic()),
    })
    this.#passes = new SyncPasses({
      runtime, replicas, local, metrics, refills: this.#refills, schedule: this.#schedule, options: this.#options,
      signal: this.#abort.signal,
    })
    this.#queue = new SyncQueue(this.#options.passesMax, job => this.#passes.run(job))
    this.#catchUp = new CatchUp({
      clock: runtime.clock, log: runtime.log, options: this.#options, local, queue: this.#queue,
      isConnected: node => replicas.isConnected(node),
      current: key => this.#shards.get(key),
      isDamaged: key => this.#repair.isDamaged(key),
      reportFilled: shard => this.#reportFilled(shard),
      tryAgain: () => this.#armCatchUp(),
    })
    this.#periodicRound = new SlicedRound(runtime.clock, shard => {
      this.#push(shard)
      this.#compareChanged(shard)
    })
    this.#repair = new ReplicaRepair({
      clock: runtime.clock, log: runtime.log, local, replicas, signal: this.#abort.signal,
      retryMs: this.#options.repairRetryMs, callTimeoutMs: this.#options.callTimeoutMs,
      current: key => this.#shards.get(key),
      reportDamaged: async ({ key, db, record }) => {
        // The log must have an earlier report first: after the rebuild, it would make the replica count too early.
        await this.#filledReports.get(key)
        return await control.replicaDamaged(db.incarnation, record.range, control.node)
      },
      onRebuilt: shard => this.#catchUp.rebuilt(shard),
    })
    this.#notices = new MissedNotices({
      replicas, timeoutMs: this.#options.callTimeoutMs, signal: this.#abort.signal, tryAgain: () => this.#armCatchUp(),
    })
  }

  /**
   * Must be called before the node serves requests. Local replicas then decline to decide edits until they have caught
   * up.
   */
  start(): void {
    const { control, local, peers } = this.#parts
    this.#running = true
    const state = control.state()
    if (state !== null) this.#shards.update(state)
    // Peers may ask these replicas to decide before this node's own metadata lists their database again.
    for (const id of local.shards()) {
      this.#inherited.set(shardKey(id), id)
      local.setCatchingUp(id, true)
    }
    for (const { key } of this.#shards.all()) this.#awaited.add(key)
    this.#openAwaited()
    this.#unsubscribe.push(
      control.onChange(changed => this.#stateChanged(changed)),
      local.onCommit(shard => this.#committed(shard)),
      local.onDamage(this.#repair),
      local.onMissed(shard => this.#missedHere(shard)),
      peers.onChange((peer, up) => { if (up) this.#peerUp(peer.node); else this.#peerDown(peer.node) }),
    )
    this.#arm()
    this.#armPeriodicPass()
    this.#armDigests()
  }

  /** Aborts all passes. Resolves when none is running and no timer is left. */
  async stop(): Promise<void> {
    this.#running = false
    for (const unsubscribe of this.#unsubscribe.splice(0)) unsubscribe()
    for (const timer of [this.#tickTimer, this.#periodicTimer, this.#digestTimer, this.#catchUpTimer]) timer?.cancel()
    this.#periodicRound.stop()
    this.#abort.abort()
    await this.#queue.stop()
    await this.#repair.stop()
    await this.#notices.stop()
  }

  /** Number of passes that wait or run (`internal_replication_jobs`). */
  get jobs(): number {
    return this.#queue.size
  }

  /** Returns the running passes that fill replicas of this node. */
  refills(): readonly RefillTask[] {
    return this.#refills.tasks()
  }

  /**
   * The coordinator calls this when a replica did not store a write that others confirmed. The replica's node is
   * informed, so that the replica catches up before it decides edits, and the missing changes are pushed to it soon.
   */
  reportMissed(shard: ShardId, node: string): void {
    if (!this.#running) return
    if (node === this.#parts.control.node) this.#missedHere(shard)
    else this.#notices.send(shard, node)
    const hosted = this.#shards.get(shardKey(shard))
    if (hosted === undefined || !hosted.peers.includes(node)) return
    this.#schedule.missed(hosted.key, node, this.#now())
    this.#arm()
  }

  /** Starts one pass from each local replica of the database to each of its peers (`_sync_shards`). */
  synchronize(db: DatabaseRecord): void {
    for (const shard of this.#shards.of(db)) {
      for (const peer of shard.peers) {
        if (this.#parts.replicas.isConnected(peer)) void this.#queue.add({ kind: 'push', shard, peer })
      }
    }
  }

  #stateChanged(state: ClusterState): void {
    const { added, changed, removed } = this.#shards.update(state)
    for (const { key, id } of removed) {
      this.#awaited.delete(key)
      this.#catchUp.disappeared(key)
      this.#schedule.forgetShard(key)
      if (this.#shards.isAlone(id)) this.#acceptAlone(id)
    }
    if (removed.length > 0) this.#passes.forgetShards(key => this.#shards.get(key) !== undefined)
    for (const { key } of added) this.#awaited.add(key)
    for (const shard of changed) {
      this.#catchUp.changed(shard)
      this.#schedule.keepPeers(shard.key, shard.peers)
      this.#schedule.pushWithin(shard.key, this.#options.pushQuietMs, this.#now())
    }
    this.#openAwaited()
    this.#refills.settle()
    this.#repair.advance()
    this.#arm()
  }

  #openAwaited(): void {
    for (const [key, id] of this.#inherited) {
      if (!this.#shards.isAlone(id)) continue
      this.#inherited.delete(key)
      this.#acceptAlone(id)
    }
    for (const key of this.#awaited) {
      const shard = this.#shards.get(key)
      if (shard === undefined || this.#parts.local.replica(shard.id) === undefined) continue
      this.#awaited.delete(key)
      if (this.#inherited.delete(key)) {
        this.#catchUp.started(shard)
        this.#schedule.pushWithin(key, this.#options.pushQuietMs, this.#now())
      } else this.#catchUp.appeared(shard)
    }
  }

  async #reportFilled({ key, db, record }: HostedShard): Promise<void> {
    const { control } = this.#parts
    const report = control.replicaFilled(db.incarnation, record.range, control.node)
    const ended = report.catch(() => {}).finally(() => {
      if (this.#filledReports.get(key) === ended) this.#filledReports.delete(key)
    })
    this.#filledReports.set(key, ended)
    await report
    this.#refills.filled()
  }

  /** Without other replicas there is nobody to catch up with. */
  #acceptAlone(id: ShardId): void {
    this.#parts.local.compared(id)
    this.#parts.local.setCatchingUp(id, false)
  }

  #committed(id: ShardId): void {
    const shard = this.#shards.get(shardKey(id))
    if (shard === undefined) return
    this.#schedule.committed(shard.key, shard.peers, this.#now())
    this.#arm()
  }

  #missedHere(id: ShardId): void {
    const shard = this.#shards.get(shardKey(id))
    if (shard !== undefined) this.#catchUp.missed(shard)
  }

  #peerUp(peer: string): void {
    this.#notices.retry(peer)
    for (const shard of this.#shards.all()) {
      if (!shard.peers.includes(peer)) continue
      this.#catchUp.peerUp(shard, peer)
      // The peer pulls by itself when it missed changes, so this push waits a moment.
      this.#schedule.pushWithin(shard.key, this.#options.pushQuietMs, this.#now())
    }
    this.#arm()
  }

  #peerDown(peer: string): void {
    this.#schedule.forgetPeer(peer)
    for (const shard of this.#shards.all()) this.#catchUp.peerDown(shard, peer)
  }

  #push(shard: HostedShard): void {
    for (const peer of shard.peers) {
      if (!this.#parts.replicas.isConnected(peer) || this.#schedule.isCovered(shard.key, peer)) continue
      void this.#queue.add({ kind: 'push', shard, peer }).then(succeeded => {
        if (!succeeded) this.#pushFailed(shard, peer)
      })
    }
  }

  /**
   * Compares replicas by digests after changes in the cases in which no other pass detects a difference: under a small
   * `_revs_limit`, and after purges.
   */
  #compareChanged(shard: HostedShard): void {
    const kind = shard.db.revsLimit < this.#options.shortHistoryRevs ? 'compare' : 'check'
    for (const peer of shard.peers) {
      if (!this.#parts.replicas.isConnected(peer) || this.#schedule.isCompared(shard.key, peer)) continue
      const start = this.#schedule.begin(shard.key, this.#now())
      // A check finds the same differences from both sides, so only one side starts it. A shard without changes needs
      // none.
      if (kind === 'check' && (this.#parts.control.node > peer || start.commits === 0)) continue
      void this.#queue.add({ kind, shard, peer }).then(succeeded => {
        if (succeeded) this.#schedule.compared(shard.key, peer, start)
      })
    }
  }

  /** Schedules another push. A peer without a link is skipped, because it is pushed to when its link opens. */
  #pushFailed({ key }: HostedShard, peer: string): void {
    if (!this.#running || this.#shards.get(key) === undefined || !this.#parts.replicas.isConnected(peer)) return
    this.#schedule.failed(key, peer, this.#now())
    this.#arm()
  }

  #armCatchUp(): void {
    if (!this.#running || this.#catchUpTimer !== undefined) return
    this.#catchUpTimer = this.#parts.runtime.clock.setTimer(this.#options.catchUpRetryMs, () => {
      this.#catchUpTimer = undefined
      this.#catchUp.tick()
      this.#notices.retry()
    })
  }

  #arm(): void {
    if (!this.#running || this.#tickTimer !== undefined) return
    if (!this.#schedule.anyWaiting && this.#awaited.size === 0) return
    this.#tickTimer = this.#parts.runtime.clock.setTimer(tickMs, () => {
      this.#tickTimer = undefined
      this.#openAwaited()
      for (const key of this.#schedule.takeDue(this.#now())) {
        const shard = this.#shards.get(key)
        if (shard !== undefined) this.#push(shard)
      }
      this.#arm()
    })
  }

  #armPeriodicPass(): void {
    const { clock, random } = this.#parts.runtime
    this.#periodicTimer = clock.setTimer(this.#options.periodicPassMs * (0.75 + random.fraction() / 2), () => {
      this.#catchUp.tick()
      const state = this.#parts.control.state()
      if (state !== null) this.#notices.forget((node, shard) => databaseOn(node, state, shard) !== undefined)
      this.#periodicRound.start(this.#shards.all())
      this.#armPeriodicPass()
    })
  }

  /**
   * Compares one shard at a time, spread over the interval. Of each pair of replicas, the node with the lesser name
   * compares.
   */
  #armDigests(): void {
    const { digestIntervalMs } = this.#options
    if (digestIntervalMs === 0) return
    const { clock, random } = this.#parts.runtime
    const pauseMs = Math.max(tickMs, digestIntervalMs / Math.max(1, this.#shards.size))
    this.#digestTimer = clock.setTimer(pauseMs * (0.75 + random.fraction() / 2), () => {
      void this.#compareDigests().then(() => { if (this.#running) this.#armDigests() })
    })
  }

  async #compareDigests(): Promise<void> {
    const { control: { node }, replicas } = this.#parts
    const shard = this.#nextForDigests()
    for (const peer of shard?.peers ?? []) {
      if (!this.#running || node >= peer || !replicas.isConnected(peer)) continue
      await this.#queue.add({ kind: 'compare', shard: shard!, peer })
    }
  }

  #nextForDigests(): HostedShard | undefined {
    const next = this.#digestRound?.next()
    if (next?.done === false) return next.value
    this.#digestRound = this.#shards.all()
    return this.#digestRound.next().value
  }

  #now(): number {
    return this.#parts.runtime.clock.monotonic()
  }
}

