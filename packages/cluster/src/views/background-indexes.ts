import { mapBounded, shardKey, SingleRun } from '@sectional/core'
import type { CallContext, IndexDefinition, IndexReplica, ShardId } from '@sectional/core'
import { type Runtime, sleep, type Timer } from '@sectional/runtime'
import type { Coordinator } from '../contracts/coordinator.ts'
import type { DesignDocument, DesignDocuments } from '../contracts/design-document.ts'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { ControlPlane } from '../control/control-plane.ts'
import { databaseOn } from '../control/shard-inventory.ts'
import type { LocalReplicas } from '../replicas/local-replicas.ts'
import { IndexIds } from './index-ids.ts'
import { defaultBackgroundIndexOptions, type BackgroundIndexOptions } from './background-index-options.ts'

export interface BackgroundIndexesParts {
  readonly runtime: Pick<Runtime, 'clock' | 'log'>
  readonly control: Pick<ControlPlane, 'node' | 'state'>
  readonly local: Pick<LocalReplicas, 'onCommit' | 'shards'>
  readonly coordinator: Pick<Coordinator, 'designDocuments'>
  /** Returns the indexes of a replica on this node. */
  readonly indexes: (shard: ShardId) => Pick<IndexReplica, 'buildIndex'>
  /** Returns the definitions of all indexes that a design document needs. */
  readonly definitionsOf: (document: DesignDocument, db: DatabaseRecord) => readonly IndexDefinition[]
  /** Returns the option `views/background_updates`. */
  readonly enabled: () => boolean
  readonly options?: Partial<BackgroundIndexOptions>
}

/**
 * Brings the indexes of this node's replicas up to date without a query, some seconds after a replica or the design
 * documents of its database have changed. A design document with `autoupdate: false` is left to queries. What failed,
 * and what a restart interrupted, is done after the next change, or by a query.
 */
export class BackgroundIndexes {
  readonly #parts: BackgroundIndexesParts
  readonly #options: BackgroundIndexOptions
  readonly #abort = new AbortController()
  readonly #ids = new IndexIds()
  readonly #round = new SingleRun(() => this.#updateAll())
  /** The replicas that have changed, by the key of their shard. */
  readonly #changed = new Map<string, ShardId>()
  /** The incarnations of the databases whose design documents have changed. */
  readonly #redesigned = new Set<string>()
  /** Updates that take long, by shard and index. They do not reject. At most `longMax`. */
  readonly #long = new Map<string, Promise<void>>()
  #unsubscribe: () => void = () => {}
  #timer: Timer | undefined

  constructor(parts: BackgroundIndexesParts) {
    this.#parts = parts
    this.#options = { ...defaultBackgroundIndexOptions, ...parts.options }
  }

  start(): void {
    this.#unsubscribe = this.#parts.local.onCommit((shard, documents) => {
      if (!documents || !this.#parts.enabled()) return
      this.#changed.set(shardKey(shard), shard)
      this.#schedule()
    })
  }

  /** Builds that have begun go on until their replica is closed. */
  async stop(): Promise<void> {
    this.#unsubscribe()
    this.#abort.abort()
    this.#timer?.cancel()
    await this.#round.running
    await Promise.all(this.#long.values())
  }

  /** Call this when a design document may have changed in the database with this incarnation. */
  designChanged(incarnation: string): void {
    if (!this.#parts.enabled()) return
    this.#redesigned.add(incarnation)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#abort.signal.aborted) return
    this.#timer = this.#parts.runtime.clock.setTimer(this.#options.delayMs, () => {
      this.#timer = undefined
      this.#round.request()
    })
  }

  async #updateAll(): Promise<void> {
    const { local } = this.#parts
    const shards = [...this.#changed.values()]
    if (this.#redesigned.size > 0) {
      shards.push(...local.shards().filter(shard =>
        this.#redesigned.has(shard.incarnation) && !this.#changed.has(shardKey(shard))))
    }
    this.#changed.clear()
    this.#redesigned.clear()
    const databases = Map.groupBy(shards, ({ incarnation }) => incarnation)
    await mapBounded([...databases.values()], this.#options.databasesMax, replicas => this.#updateDatabase(replicas))
  }

  /** Updates the indexes of some replicas of one database. Never rejects. */
  async #updateDatabase(shards: readonly ShardId[]): Promise<void> {
    for (const shard of shards) {
      if (this.#abort.signal.aborted) return
      await this.#attempt(shard, () => this.#updateReplica(shard))
    }
  }

  async #updateReplica(shard: ShardId): Promise<void> {
    const { control, coordinator } = this.#parts
    const state = control.state()
    const db = state ? databaseOn(control.node, state, shard) : undefined
    if (db === undefined) return
    const documents = await coordinator.designDocuments(db)
    for (const definition of this.#definitions(documents, db)) {
      if (this.#abort.signal.aborted) return
      // The index of a design document that was changed meanwhile may have been removed already.
      if (await coordinator.designDocuments(db) !== documents) return
      await this.#updateIndex(shard, definition)
    }
  }

  /** Waits for the update of an index, but no longer than `longMs` unless `longMax` others take long. Never rejects. */
  async #updateIndex(shard: ShardId, definition: IndexDefinition): Promise<void> {
    const { clock } = this.#parts.runtime
    const { longMs, longMax } = this.#options
    const key = `${shardKey(shard)} ${this.#ids.of(definition)}`
    if (this.#long.has(key)) return
    const ended = new AbortController()
    let isComplete = false
    const update = this.#attempt(shard, async () => {
      isComplete = await this.#update(shard, definition)
    }).finally(() => ended.abort())
    await sleep(clock, longMs, ended.signal)
    while (!ended.signal.aborted && this.#long.size >= longMax) await Promise.race([update, ...this.#long.values()])
    if (ended.signal.aborted) return
    this.#long.set(key, update.then(() => {
      this.#long.delete(key)
      if (!isComplete) return
      // The changes that came meanwhile were not for this index.
      this.#changed.set(shardKey(shard), shard)
      this.#schedule()
    }))
  }

  /** A failure, for instance of the function of one view, does not keep the other indexes from their updates. */
  async #attempt(shard: ShardId, update: () => Promise<void>): Promise<void> {
    try {
      await update()
    } catch (error) {
      this.#parts.runtime.log.debug({ shard: shardKey(shard), error: String(error) },
        'an index could not be updated in the background')
    }
  }

  #definitions(documents: DesignDocuments, db: DatabaseRecord): readonly IndexDefinition[] {
    const updated = [...documents.values()].filter(({ members }) => members['autoupdate'] !== false)
    const definitions = updated.flatMap(document => this.#parts.definitionsOf(document, db))
    return [...new Map(definitions.map(definition => [this.#ids.of(definition), definition])).values()]
  }

  /**
   * Waits until the index has the changes of this moment, or makes no progress for `waitMs`. Returns whether it has
   * them.
   */
  async #update(shard: ShardId, definition: IndexDefinition): Promise<boolean> {
    const { waitMs } = this.#options
    const call: CallContext = { timeoutMs: 2 * waitMs, signal: this.#abort.signal, requestId: 'background-indexes' }
    const replica = this.#parts.indexes(shard)
    let through: number | 'newest' = 'newest'
    for (let read = -1; ;) {
      const reply = await replica.buildIndex({ definition, through, waitMs }, call)
      if (reply.position.sequence >= reply.through) return true
      if (reply.readSequence <= read) return false
      read = reply.readSequence
      through = reply.through
    }
  }
}
