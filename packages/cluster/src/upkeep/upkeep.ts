/**
 * Slow work on this node's shards. It deletes records of purges that every replica has applied, and purges documents
 * that were deleted long enough ago (`_auto_purge`). One node does the auto-purge of a shard: the first of its replicas
 * that is up. If two nodes do it at the same time, the second one changes nothing.
 */
import { sequenceBefore, shardKey } from '@sectional/core'
import type { CallContext, ChangeRow, ShardId, ShardReplica } from '@sectional/core'
import type { Runtime, Timer } from '@sectional/runtime'
import type { LocalReplicas } from '../replicas/local-replicas.ts'
import { activeReplicas } from '../control/cluster-state.ts'
import type { DatabaseRecord, ShardRecord } from '../control/cluster-state.ts'
import type { ControlPlane } from '../control/control-plane.ts'
import type { Coordinator } from '../contracts/coordinator.ts'
import type { ReplicaDirectory } from '../replicas/replica-directory.ts'
import { parseTimeToLive } from './time-to-live.ts'
import { defaultUpkeepOptions } from './upkeep-options.ts'
import type { UpkeepOptions } from './upkeep-options.ts'

export interface UpkeepParts {
  readonly runtime: Runtime
  readonly control: Pick<ControlPlane, 'node' | 'state'>
  readonly replicas: ReplicaDirectory
  readonly local: Pick<LocalReplicas, 'replica'>
  readonly coordinator: Pick<Coordinator, 'purgeDocuments'>
  readonly options?: Partial<UpkeepOptions>
}

export class Upkeep {
  readonly #parts: UpkeepParts
  readonly #options: UpkeepOptions
  readonly #abort = new AbortController()
  /** The history of the replica of each hosted shard, and the sequence up to which its tombstones were purged. */
  readonly #purgedUpTo = new Map<string, { readonly history: string; readonly sequence: number }>()
  #timer: Timer | undefined
  #wake: () => void = () => {}
  #round: Promise<void> = Promise.resolve()

  constructor(parts: UpkeepParts) {
    this.#parts = parts
    this.#options = { ...defaultUpkeepOptions, ...parts.options }
  }

  start(): void {
    const { clock, random } = this.#parts.runtime
    this.#timer = clock.setTimer(this.#options.intervalMs * (0.75 + random.fraction() / 2), () => {
      this.#round = this.run().finally(() => { if (!this.#abort.signal.aborted) this.start() })
    })
  }

  async stop(): Promise<void> {
    this.#abort.abort()
    this.#timer?.cancel()
    this.#wake()
    await this.#round
  }

  /** Runs one round over this node's shards. Never rejects. */
  async run(): Promise<void> {
    const { control, runtime } = this.#parts
    let looked = 0
    const hosted = new Set<string>()
    for (const db of control.state()?.databases.values() ?? []) {
      for (const shard of db.shards) {
        if (this.#abort.signal.aborted) return
        if (!activeReplicas(shard).some(({ node }) => node === control.node)) continue
        hosted.add(shardKey({ incarnation: db.incarnation, range: shard.range }))
        // Without pauses, a round over all shards could block the event loop when all answers are immediate.
        if (++looked % this.#options.shardsPerRest === 0) await this.#rest()
        try {
          await this.#tend(db, shard)
        } catch (error) {
          const fields = { db: db.name, range: shard.range, error: String(error) }
          runtime.log.debug(fields, 'the upkeep of a shard failed; the next round tries again')
        }
      }
    }
    for (const key of this.#purgedUpTo.keys()) if (!hosted.has(key)) this.#purgedUpTo.delete(key)
  }

  async #tend(db: DatabaseRecord, shard: ShardRecord): Promise<void> {
    const { local } = this.#parts
    const id: ShardId = { incarnation: db.incarnation, range: shard.range }
    const replica = local.replica(id)
    if (replica === undefined) return
    await this.#trimPurges(db, shard, id, replica)
    const ttlMs = parseTimeToLive(db.autoPurge['deleted_document_ttl']) ?? Number.POSITIVE_INFINITY
    if (ttlMs !== Number.POSITIVE_INFINITY && this.#isFirst(shard)) await this.#purgeTombstones(db, id, replica, ttlMs)
  }

  /**
   * Deletes records of purges beyond the limit, but only those that all replicas have applied, however many are left.
   */
  async #trimPurges(db: DatabaseRecord, shard: ShardRecord, id: ShardId, replica: ShardReplica): Promise<void> {
    const { control, replicas } = this.#parts
    const { history, purgeSequence, oldestPurge } = await replica.upkeep.replicaInfo(this.#call())
    let through = purgeSequence - db.purgedInfosLimit
    if (oldestPurge === 0 || through < oldestPurge) return
    for (const { node } of shard.replicas) {
      if (node === control.node) continue
      if (!replicas.isConnected(node)) return
      const { purgesSeen } = await replicas.replica(node, id).upkeep.replicaInfo(this.#call())
      through = Math.min(through, purgesSeen[history] ?? 0)
    }
    if (through >= oldestPurge) await replica.trimPurges(through, this.#call())
  }

  #isFirst(shard: ShardRecord): boolean {
    const { control: { node: own }, replicas } = this.#parts
    return activeReplicas(shard).find(({ node }) => node === own || replicas.isConnected(node))?.node === own
  }

  async #purgeTombstones(db: DatabaseRecord, id: ShardId, replica: ShardReplica, ttlMs: number): Promise<void> {
    const { clock, log } = this.#parts.runtime
    const { history, sequence } = await replica.upkeep.replicaInfo(this.#call())
    const spans = await replica.timeSpans({ clear: false }, this.#call())
    const through = sequenceBefore(spans, clock.now() - ttlMs, sequence)
    const before = this.#purgedUpTo.get(shardKey(id))
    const since = before?.history === history ? before.sequence : 0
    if (through <= since) return
    const tombstones: ChangeRow[] = []
    let purged = 0
    let reached = through
    const purge = async (): Promise<void> => {
      const rows = tombstones.splice(0)
      const left = await this.#purge(db, rows)
      purged += rows.length - left.length
      reached = Math.min(reached, ...left.map(row => row.sequence - 1))
    }
    const changes = { since, descending: false, body: false, locals: false }
    for await (const page of replica.scanChanges(changes, this.#call())) {
      for (const row of page) {
        if (row.sequence > through) break
        if (row.leaves[0]!.deleted) tombstones.push(row)
        if (tombstones.length < this.#options.purgeBatchMax) continue
        await purge()
        await this.#rest()
        if (this.#abort.signal.aborted) return
      }
      if (page.at(-1)!.sequence >= through) break
    }
    await purge()
    this.#purgedUpTo.set(shardKey(id), { history, sequence: reached })
    if (purged > 0) log.info({ db: db.name, purged }, 'purged documents that were deleted long enough ago')
  }

  /** Returns the rows of which nothing was purged, because other replicas have newer revisions for example. */
  async #purge(db: DatabaseRecord, rows: readonly ChangeRow[]): Promise<readonly ChangeRow[]> {
    if (rows.length === 0) return []
    const requests = rows.map(({ id, leaves }) => ({ id, revisions: leaves.map(leaf => leaf.revision) }))
    const context = { requestId: 'auto-purge', signal: this.#abort.signal }
    const outcomes = await this.#parts.coordinator.purgeDocuments(db, requests, {}, context)
    return rows.filter((_, index) => outcomes[index]!.revisions.length === 0)
  }

  #rest(): Promise<void> {
    return new Promise(resolve => {
      const timer = this.#parts.runtime.clock.setTimer(this.#options.restMs, resolve)
      this.#wake = () => {
        timer.cancel()
        resolve()
      }
    })
  }

  #call(): CallContext {
    return { timeoutMs: this.#options.callTimeoutMs, signal: this.#abort.signal, requestId: 'upkeep' }
  }
}
