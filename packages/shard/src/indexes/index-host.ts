import type {
  ChangeReplica, ImmediateIndexReads, IndexDefinition, IndexReplica, ReadDocuments, ReplicaCheckpoint, ShardId,
} from '@sectional/core'
import { ReplicaError, shardKey } from '@sectional/core'
import type { Clock, Counter, Log, Machine, Metrics, Random, Storage, Turns } from '@sectional/runtime'
import { toReplicaError } from '../calls/call-guard.ts'
import { BuildQueue } from './build-queue.ts'
import type { FindParts } from './find/document-find.ts'
import { hostedIndexer } from './hosted-indexer.ts'
import type { IndexOptions } from './index-options.ts'
import { IndexReports } from './index-reports.ts'
import { IndexStore, indexStoreName } from './index-store.ts'
import type { Indexer } from './indexer.ts'
import { NoIndexes } from './no-indexes.ts'
import { type IndexTask, ShardIndexes } from './shard-indexes.ts'

export interface IndexHostParts {
  readonly storage: Storage
  readonly clock: Clock
  readonly turns: Turns
  readonly random: Random
  readonly machine: Pick<Machine, 'testInTime' | 'cores'>
  readonly metrics: Metrics
  readonly log: Log
  /** Returns the functions of indexes of one database. */
  readonly indexerOf: (incarnation: string) => Indexer
  /** Absent values have their defaults. */
  readonly options?: Partial<IndexOptions>
  /** Returns the histories of all replicas of the node. */
  readonly histories: () => ReadonlySet<string>
  /** Set by tests only: wraps each replica. */
  readonly indexed?: (indexed: IndexedReplica) => IndexedReplica
}

/** A replica of the node. Its history names it in the store of indexes, so that a rebuilt replica has no old rows. */
export interface IndexedReplica {
  readonly shard: ShardId
  readonly history: string
  readonly replica: ChangeReplica
  /** The documents of the replica. */
  readonly documents: ReadDocuments
  /** Returns the newest position of the replica at once; undefined when it was dropped or is being rebuilt. */
  readonly newest: () => ReplicaCheckpoint | undefined
  /** False after the replica was dropped or is being rebuilt. */
  readonly isServed: () => boolean
}

/**
 * As many long builds as the machine has cores run at the same time, within these limits. The main thread is used fully
 * by two of them, unless their functions are slow.
 */
const buildsMin = 2
const buildsMax = 4

/** An index of a shard that is being built. */
export interface ShardIndexTask extends IndexTask { readonly shard: ShardId }

/**
 * The indexes of all replicas of one node. Their store is opened when the first index is created, or at the start when
 * an earlier process has left it, so a node without indexes has no files and no memory for them.
 */
export class IndexHost {
  readonly #parts: IndexHostParts
  readonly #queue: BuildQueue
  readonly #reports: IndexReports
  /** The store, from the start of its opening; undefined again when the opening has failed. */
  #store: Promise<IndexStore> | undefined
  /** The indexes that were asked for, by the history of their replica. */
  readonly #served = new Map<string, { readonly shard: ShardId; readonly indexes: ShardIndexes }>()
  /** The indexes whose builds are ending, by history. New ones of that history wait for them. */
  readonly #ending = new Map<string, Promise<void>>()
  readonly #removals = new Set<Promise<void>>()
  readonly #damaged: Counter
  #starting: Promise<void> | undefined
  #closing: Promise<void> | undefined

  constructor(parts: IndexHostParts) {
    this.#parts = parts
    this.#queue = new BuildQueue(parts.clock, () => parts.turns.background.isBusy, {
      runningMax: Math.min(Math.max(parts.machine.cores(), buildsMin), buildsMax),
    })
    this.#reports = new IndexReports(parts)
    const builds = parts.metrics.gauge('sectional_index_builds', 'Builds of indexes, by state.', ['state'])
    this.#damaged = parts.metrics.counter('sectional_index_damaged_total',
      'Indexes, and stores of all indexes of a node, that were damaged and are built again.', ['what'])
    parts.metrics.onCollect(() => {
      if (this.#closing !== undefined) return
      builds.set(this.#queue.running, { state: 'running' })
      builds.set(this.#queue.waiting, { state: 'waiting' })
    })
  }

  /** Opens the store in the background if it exists, so that rows of replicas that are gone leave the disk. */
  start(): void {
    this.#starting = this.#openExisting().catch((error: unknown) => {
      this.#parts.log.warn({ error: String(error) }, 'the store of indexes could not be opened; '
        + 'the first call for an index tries it again')
    })
  }

  /**
   * Returns the indexes of a replica.
   *
   * @param creates false: for calls that create no index. They do not create the store either.
   * @throws ReplicaError `not_hosted` when the replica is not served any more, `closed`, `storage`
   */
  async indexesOf(indexed: IndexedReplica, creates: boolean): Promise<IndexReplica> {
    const { shard, history, replica, documents, newest, isServed } = this.#parts.indexed?.(indexed) ?? indexed
    const { clock, turns, machine } = this.#parts
    const find: FindParts = { replica, documents, clock, turns, machine }
    if (!creates && !await this.#exists()) return new NoIndexes(find)
    const store = await this.#open()
    if (store.isDamaged) return this.indexesOf(indexed, creates)
    await this.#ending.get(history)
    if (this.#closing !== undefined) throw closed()
    if (!isServed()) throw new ReplicaError('not_hosted', 'the replica was dropped or is being rebuilt')
    let served = this.#served.get(history)
    if (served === undefined) {
      const { metrics, indexerOf } = this.#parts
      const name = shardKey(shard)
      const indexer = hostedIndexer(indexerOf(shard.incarnation), metrics,
        (definition, example, count) => this.#reports.documentsFailed(name, definition, example, count))
      const onFailure = (definition: IndexDefinition, error: ReplicaError): void =>
        this.#reports.buildFailed(name, definition, error)
      const indexes = new ShardIndexes({
        owner: history, database: shard.incarnation,
        store, replica, newest, indexer, queue: this.#queue, clock, turns, find, onFailure,
      })
      this.#served.set(history, served = { shard, indexes })
    }
    return served.indexes
  }

  /** Returns reads from memory of the indexes of a replica, once the indexes were asked for. */
  immediate(history: string): ImmediateIndexReads | undefined {
    return this.#closing === undefined ? this.#served.get(history)?.indexes.immediate : undefined
  }

  /** Ends the builds of a replica, and refuses new ones until its indexes are asked for again. Keeps the rows. */
  endBuilds(history: string): void {
    const served = this.#served.get(history)
    if (served === undefined) return
    this.#served.delete(history)
    this.#ending.set(history, served.indexes.close().finally(() => this.#ending.delete(history)))
  }

  /** Removes the indexes of a replica that is gone, in the background. Call `endBuilds` first. */
  remove(history: string): void {
    // A store that is not open is compared with the node's replicas when it is opened.
    if (this.#store === undefined) return
    const removal = this.#remove(this.#store, history).finally(() => this.#removals.delete(removal))
    this.#removals.add(removal)
  }

  /** Returns the builds that run now. */
  tasks(): readonly ShardIndexTask[] {
    return [...this.#served.values()].flatMap(({ shard, indexes }) => indexes.tasks().map(task => ({ shard, ...task })))
  }

  /** Waits until the rows of all replicas that were removed so far are off the disk, or removing them has failed. */
  async removed(): Promise<void> {
    await this.#starting
    while (this.#removals.size > 0) await Promise.all(this.#removals)
    await (await this.#store)?.cleared()
  }

  /**
   * Reads all files of the store of indexes if it is open. A damaged store is replaced by an empty one.
   * @param rest called from time to time; an error that it throws ends the check
   */
  async checkFiles(rest: () => Promise<void>): Promise<void> {
    await this.#starting
    await (await this.#store)?.checkFiles(rest)
  }

  /** Ends all builds and closes the store. The calls of the replicas must be refused already. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    for (const history of [...this.#served.keys()]) this.endBuilds(history)
    await this.#starting
    await Promise.all([...this.#ending.values(), ...this.#removals])
    const store = await this.#store?.catch(() => undefined)
    await store?.close()
  }

  async #openExisting(): Promise<void> {
    if (await this.#exists() && this.#closing === undefined) await this.#open()
  }

  async #exists(): Promise<boolean> {
    try {
      return this.#store !== undefined || await this.#parts.storage.exists(indexStoreName)
    } catch (error) {
      throw toReplicaError(error)
    }
  }

  async #open(): Promise<IndexStore> {
    if (this.#closing !== undefined) throw closed()
    const opening = this.#store ??= this.#openStore()
    try {
      return await opening
    } catch (error) {
      if (this.#store === opening) this.#store = undefined
      throw toReplicaError(error)
    }
  }

  /** Opens the store, and removes indexes whose replica was dropped or rebuilt before, or is lost. */
  async #openStore(): Promise<IndexStore> {
    const store = await IndexStore.open({ ...this.#parts, onDamage: what => this.#damaged.add(1, { what }) })
    void store.damaged.then(() => this.#replace(store))
    const histories = this.#parts.histories()
    for (const owner of store.owners()) {
      if (!histories.has(owner)) await this.#remove(store, owner)
    }
    return store
  }

  /** Ends all builds, and puts an empty store in the place of a damaged one. Calls for indexes wait for it. */
  #replace(store: IndexStore): void {
    if (this.#closing !== undefined) return
    for (const history of [...this.#served.keys()]) this.endBuilds(history)
    const replaced = this.#openAnew(store)
    replaced.catch((error: unknown) => this.#parts.log.warn({ error: String(error) },
      'the damaged store of indexes could not be replaced; the next call for an index tries it again'))
    this.#store = replaced
  }

  async #openAnew(store: IndexStore): Promise<IndexStore> {
    await Promise.all([...this.#ending.values(), ...this.#removals])
    await store.close()
    await this.#parts.storage.remove(indexStoreName)
    return this.#openStore()
  }

  async #remove(opened: IndexStore | Promise<IndexStore>, history: string): Promise<void> {
    try {
      const store = await opened
      await this.#ending.get(history)
      const ids = [...store.indexesOf(history).keys()]
      if (ids.length > 0) await store.drop(history, ids)
    } catch (error) {
      this.#parts.log.warn({ error: String(error) },
        'the indexes of a replica that is gone could not be removed; it is tried again')
    }
  }
}

function closed(): ReplicaError {
  return new ReplicaError('closed', 'the node is shutting down')
}
