/**
 * Decides which local replicas must not decide edits alone, because they may have missed some. These are: all replicas
 * after a start; replicas that were cut off from a majority of their shard; and replicas that failed to store revisions
 * which others may have confirmed, for whatever reason (a full disk, a timeout, overload). A replica that stayed
 * connected to a majority continues to decide when the minority returns, because it has missed no acknowledged write.
 *
 * A replica has caught up when one pass from every reachable active replica has succeeded and a majority was reachable.
 * Two kinds of replicas are in addition compared with each of these by digests, because checkpoints may cover changes
 * that their disks have lost: replicas that are being filled, and replicas whose process did not stop in order.
 * Declining is not final: a coordinator can still make such a replica decide, after it has read the other replicas.
 */
import type { Clock, Log } from '@sectional/runtime'
import { majority } from '../quorum/majority.ts'
import type { AntiEntropyOptions } from './anti-entropy-options.ts'
import type { HostedShard } from './hosted-shards.ts'
import type { LocalReplicas } from '../replicas/local-replicas.ts'
import type { SyncQueue } from './sync-queue.ts'

export interface CatchUpParts {
  readonly clock: Clock
  readonly log: Log
  readonly options: Pick<AntiEntropyOptions, 'catchUpMaxMs'>
  readonly local: LocalReplicas
  readonly queue: SyncQueue
  readonly isConnected: (node: string) => boolean
  /** Returns the shard as it is in the current cluster state. */
  readonly current: (key: string) => HostedShard | undefined
  /** Returns true while the replica is about to be rebuilt; it must then not count as filled. */
  readonly isDamaged: (key: string) => boolean
  /**
   * Reports that a filling replica has every change that its active peers had. Rejects when the cluster could not be
   * informed.
   */
  readonly reportFilled: (shard: HostedShard) => Promise<void>
  /** Called when an operation failed: `tick` must be called soon. */
  readonly tryAgain: () => void
}

interface ShardProgress {
  /** Peers from which a pull is running. */
  readonly bringing: Set<string>
  /**
   * Peers from which a pull has succeeded; null when the replica is up to date and its progress is no longer recorded.
   */
  pulled: Set<string> | null
  /** Monotonic time at which the replica began to decline; null when it does not decline. */
  decliningSince: number | null
}

function newProgress(decliningSince: number | null): ShardProgress {
  return { bringing: new Set(), pulled: new Set(), decliningSince }
}

export class CatchUp {
  readonly #parts: CatchUpParts
  /** Progress of the replicas that are not known to be up to date; usually few. */
  readonly #progress = new Map<string, ShardProgress>()
  /** True when some replica failed to store a write since the last tick. */
  #missed = false

  constructor(parts: CatchUpParts) {
    this.#parts = parts
  }

  /** Number of local replicas that decline to decide edits. */
  get declining(): number {
    return [...this.#progress.values()].filter(progress => progress.decliningSince !== null).length
  }

  /** Call this after a start, when it is unknown what the replica missed. The replica already declines. */
  started(shard: HostedShard): void {
    this.#behind(shard)
    if (shard.activePeers.length === 0) this.#parts.local.setCatchingUp(shard.id, false)
    else this.#decline(shard)
    this.advance(shard)
  }

  /**
   * Call this when a replica appears while the node runs. It is usually empty, like its peers, so it declines only when
   * it turns out to lag.
   */
  appeared(shard: HostedShard): void {
    this.#behind(shard)
    this.advance(shard)
  }

  /**
   * Call this when the shard's replicas changed: peers may have been added, or this node's active replica may have
   * become a filling one.
   */
  changed(shard: HostedShard): void {
    if (shard.filling) this.#behind(shard)
    this.advance(shard)
  }

  /** Call this after the replica was rebuilt. It has a new history and lacks documents. */
  rebuilt(shard: HostedShard): void {
    this.#progress.set(shard.key, newProgress(null))
    this.#decline(shard)
    this.advance(shard)
  }

  /**
   * Call this when the replica failed to store a write that its peers may have. Running passes may have begun too early
   * to bring the write, so all pulls are needed again. They begin after a moment, because the disk may still be full.
   */
  missed(shard: HostedShard): void {
    this.#progress.set(shard.key, newProgress(this.#progress.get(shard.key)?.decliningSince ?? null))
    this.#missed = true
    this.#decline(shard)
    this.#parts.tryAgain()
  }

  disappeared(key: string): void {
    this.#progress.delete(key)
  }

  peerUp(shard: HostedShard, peer: string): void {
    if (!shard.activePeers.includes(peer)) return
    const progress = this.#progress.get(shard.key)
    if (progress === undefined || progress.pulled === null) return
    progress.pulled.delete(peer)
    // The running pull may have begun on the previous link.
    progress.bringing.delete(peer)
    this.#decline(shard)
    this.advance(shard)
  }

  peerDown(shard: HostedShard, peer: string): void {
    if (!shard.activePeers.includes(peer)) return
    this.#progress.get(shard.key)?.pulled?.delete(peer)
    if (!this.#reachesMajority(shard)) this.#behind(shard)
    else this.advance(shard)
  }

  /** Checks all replicas that are not up to date for failed pulls, expired time limits and failed reports. */
  tick(): void {
    const now = this.#parts.clock.monotonic()
    // While writes are missed, because the disk is full for example, replicas try to catch up one after the other. The
    // time limit of those that wait for their turn begins again, because they must not give up.
    const inTurn = this.#missed
    this.#missed = false
    let next: HostedShard | undefined
    for (const [key, progress] of this.#progress) {
      const { pulled, decliningSince } = progress
      const shard = this.#parts.current(key)
      if (shard === undefined || pulled === null) continue
      if (inTurn && this.#steps(shard, pulled, progress.bringing) !== null) {
        next ??= shard
        if (decliningSince !== null) progress.decliningSince = now
        continue
      }
      if (decliningSince !== null && now - decliningSince >= this.#parts.options.catchUpMaxMs) {
        const fields = { db: shard.db.name, shard: key, waitedMs: now - decliningSince }
        this.#parts.log.warn(fields, 'a replica decides edits again although it could not catch up')
        this.#accept(shard)
      }
      this.advance(shard)
    }
    if (next === undefined) return
    const progress = this.#progress.get(next.key)!
    this.#progress.delete(next.key)
    this.#progress.set(next.key, progress)
    this.advance(next)
    this.#parts.tryAgain()
  }

  /** Starts the pulls that are still needed, or ends the catch-up. */
  advance(shard: HostedShard): void {
    const progress = this.#progress.get(shard.key)
    if (progress === undefined || progress.pulled === null) return
    const { pulled, bringing } = progress
    const steps = this.#steps(shard, pulled, bringing)
    if (steps === 'finish') return this.#finish(shard, progress)
    for (const peer of steps ?? []) {
      bringing.add(peer)
      void this.#bring(shard, peer).then(succeeded => {
        bringing.delete(peer)
        if (!succeeded) return this.#parts.tryAgain()
        if (progress.pulled !== pulled || !this.#parts.isConnected(peer)) return
        pulled.add(peer)
        this.advance(this.#parts.current(shard.key) ?? shard)
      })
    }
  }

  /** Returns the peers from which pulls can begin now, `finish` when none is needed, or null when only time helps. */
  #steps(
    shard: HostedShard, pulled: ReadonlySet<string>, bringing: ReadonlySet<string>,
  ): readonly string[] | 'finish' | null {
    if (shard.filling && this.#parts.isDamaged(shard.key)) return null
    const wanted = shard.activePeers.filter(peer => this.#parts.isConnected(peer) && !pulled.has(peer))
    if (wanted.length === 0) return this.#reachesMajority(shard) ? 'finish' : null
    const idle = wanted.filter(peer => !bringing.has(peer))
    return idle.length === 0 ? null : idle
  }

  /** Pulls from a peer and, where necessary, compares digests with it. Resolves to false when one of these failed. */
  async #bring(shard: HostedShard, peer: string): Promise<boolean> {
    const { queue, local } = this.#parts
    const onBehind = (): void => { this.#decline(shard) }
    if (!await queue.add({ kind: 'pull', shard, peer, onBehind }, true)) return false
    if (!shard.filling && !local.isUncompared(shard.id)) return true
    return await queue.add({ kind: 'compare', shard, peer }, true)
  }

  #finish(shard: HostedShard, progress: ShardProgress): void {
    progress.pulled = null
    this.#parts.local.compared(shard.id)
    this.#accept(shard)
    this.#progress.delete(shard.key)
    if (!shard.filling) return
    this.#parts.reportFilled(shard).catch((error: unknown) => {
      const fields = { db: shard.db.name, shard: shard.key, error: String(error) }
      this.#parts.log.debug(fields, 'the cluster could not be informed that a replica is filled; trying again')
      if (this.#parts.current(shard.key) !== undefined) this.#behind(shard)
      this.#parts.tryAgain()
    })
  }

  #behind({ key }: HostedShard): void {
    if (!this.#progress.has(key)) this.#progress.set(key, newProgress(null))
  }

  #decline(shard: HostedShard): void {
    const progress = this.#progress.get(shard.key)
    if (progress === undefined || progress.pulled === null || progress.decliningSince !== null) return
    if (shard.activePeers.length === 0) return
    progress.decliningSince = this.#parts.clock.monotonic()
    this.#parts.local.setCatchingUp(shard.id, true)
  }

  #accept(shard: HostedShard): void {
    const progress = this.#progress.get(shard.key)
    if (progress === undefined) return
    progress.decliningSince = null
    // Also a replica whose shard disappeared from this node for a time may still decline.
    this.#parts.local.setCatchingUp(shard.id, false)
  }

  #reachesMajority({ activePeers, filling }: HostedShard): boolean {
    const active = activePeers.length + (filling ? 0 : 1)
    const reached = activePeers.filter(peer => this.#parts.isConnected(peer)).length + (filling ? 0 : 1)
    return reached >= majority(active)
  }
}
