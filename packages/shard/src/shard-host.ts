import type { ImmediateIndexReads, IndexReplica, ShardId } from '@sectional/core'
import { ReplicaError } from '@sectional/core'
import { Turns } from '@sectional/runtime'
import type {
  BlobStorage, Clock, Counter, Log, Machine, Metrics, Random, Storage, Store, StoreOptions,
} from '@sectional/runtime'
import { NodeBlobs } from './blobs/node-blobs.ts'
import type { CompactionOptions } from './compaction/compaction-options.ts'
import { Compactor } from './compaction/compactor.ts'
import type { CompactionTask } from './compaction/compactor.ts'
import { toReplicaError } from './calls/call-guard.ts'
import type { IndexOptions } from './indexes/index-options.ts'
import { IndexHost } from './indexes/index-host.ts'
import type { IndexedReplica, ShardIndexTask } from './indexes/index-host.ts'
import type { Indexer } from './indexes/indexer.ts'
import { FilterBudget } from './reading/id-filter.ts'
import { KeptDocumentsBudget } from './reading/kept-documents.ts'
import { newScanPages } from './reading/shard-records.ts'
import { KnownAttempts } from './reading/known-attempts.ts'
import { prefixMax, ShardKeys } from './records/key-layout.ts'
import type { DamagedRecordError } from './records/damaged-record.ts'
import { rebuildShard } from './rebuild/shard-rebuild.ts'
import type { SalvageReport } from './rebuild/shard-salvage.ts'
import { defaultScrubOptions, Scrubber } from './scrub/scrubber.ts'
import type { ScrubOptions } from './scrub/scrubber.ts'
import { ShardChanges } from './directory/shard-changes.ts'
import { ShardDirectory, shardName } from './directory/shard-directory.ts'
import type { DirectoryEntry } from './directory/shard-directory.ts'
import { ShardEngine } from './engine/shard-engine.ts'
import { SpaceReclaimer } from './directory/space-reclaimer.ts'
import type { WriteMetrics } from './writing/shard-writer.ts'

export const documentStoreName = 'documents'
export const blobStoreName = 'attachments'
/**
 * Default sizes of the document store. The block cache is large because a read that misses LevelDB's block cache costs
 * twice as much as one that hits it. The write buffer is large because each flush of a write buffer makes LevelDB merge
 * document ids of all shards again.
 */
const defaultOptions: StoreOptions = { cacheBytes: 64 * 1024 * 1024, writeBufferBytes: 64 * 1024 * 1024 }
const commitDocumentsBuckets = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]

/** Memory that all shards of a node share, in bytes. */
export interface CacheLimits {
  /** For the filters of ids. The default is enough for the ids of eight to twenty million documents. */
  readonly filterBytesMax: number
  /** For records of documents. The default is enough for about 140,000 documents that are read repeatedly. */
  readonly keptBytesMax: number
}

const defaultCaches: CacheLimits = { filterBytesMax: 64 * 1024 * 1024, keptBytesMax: 32 * 1024 * 1024 }

export interface HostOptions {
  readonly store?: StoreOptions
  readonly caches?: Partial<CacheLimits> | undefined
  readonly compaction?: Partial<CompactionOptions>
  readonly scrub?: Partial<ScrubOptions> | undefined
  readonly indexes?: Partial<IndexOptions>
  /** Returns the functions of indexes of one database, by its incarnation. When undefined, the host has no indexes. */
  readonly indexerOf?: (incarnation: string) => Indexer
  /** Set by tests only: wraps a replica as its indexes see it. */
  readonly indexed?: ((indexed: IndexedReplica) => IndexedReplica) | undefined
}

/** Receives reports of damaged records and content; may be called more than once for one of them. */
export interface DamageListener {
  damagedReplica(shard: ShardId): void
  /** @param shards the shards of this node whose bodies name the blob */
  damagedBlob(hash: string, shards: readonly ShardId[]): void
}

/** The part of `Runtime` that the engines use. */
export interface ShardRuntime {
  readonly storage: Storage
  readonly blobs: BlobStorage
  readonly clock: Clock
  /** The turns that the whole node shares. When undefined, the shards share turns of their own. */
  readonly turns?: Turns
  readonly random: Random
  readonly metrics: Metrics
  readonly log: Log
  /** Tests the patterns of selectors. */
  readonly machine: Pick<Machine, 'testInTime' | 'cores'>
}

/**
 * Holds all shards of one node in one store. A hosted shard costs one entry in the directory; its engine is made at the
 * first request for it.
 */
export class ShardHost {
  /** The content of attachments, shared by all shards. */
  readonly blobs: NodeBlobs
  readonly #runtime: ShardRuntime
  readonly #turns: Turns
  readonly #store: Store
  readonly #directory: ShardDirectory
  readonly #metrics: WriteMetrics
  readonly #compactor: Compactor
  readonly #reclaimer: SpaceReclaimer
  readonly #indexes: IndexHost | undefined
  readonly #filterBudget: FilterBudget
  readonly #keptBudget: KeptDocumentsBudget
  readonly #attempts = new KnownAttempts()
  readonly #scanPages = newScanPages()
  readonly #commitListeners = new Set<(shard: ShardId, documents: boolean, designs: boolean) => void>()
  readonly #scrubber: Scrubber
  readonly #damaged: Counter
  readonly #damageListeners = new Set<DamageListener>()
  readonly #missedListeners = new Set<(shard: ShardId) => void>()
  readonly #abort = new AbortController()
  /** Engines by shard name. Invariant: the directory has an entry for each of them. */
  readonly #engines = new Map<string, ShardEngine>()
  readonly #names = new WeakMap<ShardId, string>()
  readonly #changes = new ShardChanges()
  /** Names of the shards that are being dropped or rebuilt. They have no engine. */
  readonly #withdrawn = new Set<string>()
  #closing: Promise<void> | undefined

  private constructor(
    runtime: ShardRuntime, store: Store, directory: ShardDirectory, blobs: NodeBlobs,
    { caches, compaction, scrub, indexes, indexerOf, indexed }: HostOptions,
  ) {
    const { filterBytesMax, keptBytesMax } = { ...defaultCaches, ...caches }
    this.blobs = blobs
    this.#filterBudget = new FilterBudget(filterBytesMax)
    this.#keptBudget = new KeptDocumentsBudget(keptBytesMax)
    this.#runtime = runtime
    this.#turns = runtime.turns ?? new Turns(runtime.clock)
    this.#store = store
    this.#directory = directory
    this.#metrics = writeMetrics(runtime.metrics)
    this.#compactor = new Compactor(runtime.clock, runtime.log, compaction)
    this.#reclaimer = new SpaceReclaimer({
      store, directory, clock: runtime.clock, log: runtime.log, onCleared: () => blobs.collectSoon(),
      signal: this.#abort.signal,
    })
    this.#indexes = indexerOf && new IndexHost({
      ...runtime, turns: this.#turns, indexerOf, ...(indexes && { options: indexes }), ...(indexed && { indexed }),
      histories: () => new Set(Array.from(directory.entries(), ({ history }) => history)),
    })
    this.#damaged = runtime.metrics.counter(
      'sectional_shard_damaged_total',
      'Damaged records of documents, bodies and the like that were met, each as often as it was met.',
    )
    blobs.onDamage = hash => { void this.#blobDamaged(hash) }
    this.#scrubber = new Scrubber({
      clock: runtime.clock, log: runtime.log, options: { ...defaultScrubOptions, ...scrub },
      shards: () => this.list(), records: shard => this.replica(shard)?.records,
      onDamage: (shard, error) => this.#recordDamaged(shard, error), readBlobs: rest => blobs.scrub(rest),
      checkFiles: (contents, rest) => this.#checkFiles(contents, rest),
    })
    const bytes = runtime.metrics.gauge(
      'sectional_shard_storage_bytes', 'Approximate bytes of the document store on disk.',
    )
    runtime.metrics.onCollect(async () => {
      if (this.#closing === undefined) bytes.set(await store.approximateSize(ShardKeys.shards(1, prefixMax)))
    })
  }

  /**
   * Opens the node's document store and continues to clear the keys of shards that were dropped earlier.
   * @throws StorageError, BlobError
   */
  static async open(runtime: ShardRuntime, options: HostOptions = {}): Promise<ShardHost> {
    const store = await runtime.storage.open(documentStoreName, {
      ...defaultOptions, ...options.store, onDamage: 'report',
    })
    const { damage } = store
    let directory
    let blobs
    try {
      const opened = directory = await ShardDirectory.open(store, runtime.random)
      blobs = new NodeBlobs({
        ...runtime, blobs: await runtime.blobs.open(blobStoreName), store,
        complete: () => opened.suspects().length === 0,
      })
    } catch (error) {
      await store.close()
      throw error
    }
    const host = new ShardHost(runtime, store, directory, blobs, options)
    host.#noteSuspects(damage)
    blobs.start()
    host.#scrubber.start()
    host.#reclaimer.start()
    host.#indexes?.start()
    return host
  }

  list(): ShardId[] {
    return Array.from(this.#directory.entries(), entry => entry.shard)
  }

  hosts(shard: ShardId): boolean { return this.#directory.get(this.#nameOf(shard)) !== undefined }

  /**
   * Returns the engine of a hosted shard; undefined when the shard is not hosted, is being dropped or rebuilt, or the
   * host is closing.
   */
  replica(shard: ShardId): ShardEngine | undefined {
    const name = this.#nameOf(shard)
    const engine = this.#engines.get(name)
    if (engine !== undefined || this.#closing !== undefined || this.#withdrawn.has(name)) return engine
    const entry = this.#directory.get(name)
    if (entry === undefined) return undefined
    const created = this.#engine(entry, (...commit) => this.#committed(...commit))
    this.#engines.set(name, created)
    return created
  }

  #engine(
    entry: DirectoryEntry, onCommit: (shard: ShardId, documents: boolean, designs: boolean) => void,
  ): ShardEngine {
    return new ShardEngine({
      store: this.#store, blobs: this.blobs, clock: this.#runtime.clock, turns: this.#turns, metrics: this.#metrics,
      compactor: this.#compactor,
      filterBudget: this.#filterBudget, keptBudget: this.#keptBudget, attempts: this.#attempts,
      scanPages: this.#scanPages, onCommit,
      onDamage: (shard, error) => this.#recordDamaged(shard, error),
      onMissed: shard => { for (const listener of this.#missedListeners) listener(shard) },
    }, entry)
  }

  /** Caches the name per `ShardId` object, because every request asks with the same few objects. */
  #nameOf(shard: ShardId): string {
    let name = this.#names.get(shard)
    if (name === undefined) this.#names.set(shard, name = shardName(shard))
    return name
  }

  /**
   * Registers a listener that is called after each durable change of a shard; `documents` is false when only local
   * documents changed, `designs` is true when a design document may have changed. Returns an unsubscribe function.
   */
  onCommit(listener: (shard: ShardId, documents: boolean, designs: boolean) => void): () => void {
    this.#commitListeners.add(listener)
    return () => { this.#commitListeners.delete(listener) }
  }

  /** Reports that acknowledged writes are missing on this disk. The store cannot tell which shards they belonged to. */
  #noteSuspects(damage: readonly string[]): void {
    const shards = this.#directory.suspects().length
    if (damage.length === 0 && shards === 0) return
    this.#damaged.add(shards)
    this.#runtime.log.error({ damage, shards }, 'writes that this node acknowledged are missing on its disk; '
      + 'each replica of this node is rebuilt from the other replicas of its shard, if there are any')
  }

  /**
   * True while entries of this node's shards may be missing on its disk. A replica that is created in that state is
   * treated as damaged, because the lost entry may have been that of a replica with acknowledged documents.
   */
  get incomplete(): boolean {
    return this.#directory.incomplete
  }

  /** Sets `incomplete`. Takes effect at once; durable when resolved. @throws StorageError */
  setIncomplete(incomplete: boolean): Promise<void> {
    return this.#directory.setIncomplete(incomplete)
  }

  /** True when this process created the document store because none existed. */
  get isNew(): boolean {
    return this.#directory.isNew
  }

  #reportLost(shard: ShardId): void {
    this.#damaged.add()
    this.#runtime.log.error({ shard: describe(shard) },
      'the replica of a shard is missing on this disk; it starts empty and is filled from other replicas, if any')
    for (const listener of this.#damageListeners) listener.damagedReplica(shard)
  }

  async #checkFiles(contents: boolean, rest: () => Promise<void>): Promise<void> {
    for (const range of await this.#store.checkFiles(contents, rest)) {
      const shards = this.#directory.shardsIn(range)
      this.#damaged.add(Math.max(1, shards.length))
      this.#runtime.log.error(
        { shards: shards.map(describe) },
        'a table of the document store is damaged; its replicas are rebuilt from other replicas, if there are any',
      )
      for (const shard of shards) for (const listener of this.#damageListeners) listener.damagedReplica(shard)
    }
    // Also at a start all files are read: nothing but a checksum of LevelDB shows that a key of an index has vanished.
    await this.#indexes?.checkFiles(rest)
  }

  /**
   * Registers a listener for damage on the disk. It is also called at once for each shard that is already suspected.
   * Returns an unsubscribe function.
   */
  onDamage(listener: DamageListener): () => void {
    this.#damageListeners.add(listener)
    for (const shard of this.#directory.suspects()) listener.damagedReplica(shard)
    return () => { this.#damageListeners.delete(listener) }
  }

  /**
   * True when the shard must be compared with its peers because the last process that wrote it did not shut down
   * cleanly.
   */
  isUncompared(shard: ShardId): boolean {
    return this.#directory.isUncompared(this.#nameOf(shard))
  }

  /** Call this after the shard was compared with its peers, or when it has no peers. */
  compared(shard: ShardId): void {
    this.#directory.compared(this.#nameOf(shard))
  }

  /**
   * Registers a listener that is called when a replica failed to store revisions or purges, or when a peer reported
   * that it did. Returns an unsubscribe function.
   */
  onMissed(listener: (shard: ShardId) => void): () => void {
    this.#missedListeners.add(listener)
    return () => { this.#missedListeners.delete(listener) }
  }

  #recordDamaged(shard: ShardId, error: DamagedRecordError): void {
    this.#damaged.add()
    this.#runtime.log.error(
      { shard: describe(shard), error: error.message },
      'a record on this disk is damaged; its replica is rebuilt from other replicas, if there are any',
    )
    for (const listener of this.#damageListeners) listener.damagedReplica(shard)
  }

  async #blobDamaged(hash: string): Promise<void> {
    try {
      const prefixes = new Set((await this.blobs.references(hash)).map(({ prefix }) => prefix))
      const shards = [...this.#directory.entries()].filter(({ prefix }) => prefixes.has(prefix))
        .map(({ shard }) => shard)
      for (const listener of this.#damageListeners) listener.damagedBlob(hash, shards)
    } catch (error) {
      this.#runtime.log.warn(
        { blob: hash, error: String(error) }, 'the shards that use damaged attachment content could not be determined',
      )
    }
  }

  #committed(shard: ShardId, documents: boolean, designs: boolean): void {
    for (const listener of this.#commitListeners) listener(shard, documents, designs)
  }

  /** Returns the compactions that are running now. */
  compactions(): readonly CompactionTask[] {
    return this.#compactor.tasks()
  }

  /** @throws ReplicaError `not_hosted`, `closed` */
  async open(shard: ShardId): Promise<ShardEngine> {
    if (this.#closing !== undefined) throw closed()
    const engine = this.replica(shard)
    if (engine === undefined) throw notHosted(shard)
    return engine
  }

  /**
   * Returns the indexes of a hosted shard.
   * @param creates false: for calls that create no index; they do not create the store of indexes either
   * @throws ReplicaError `not_hosted`, also when the host has no indexer; `closed`, `storage`
   */
  async indexes(shard: ShardId, creates: boolean): Promise<IndexReplica> {
    const engine = await this.open(shard)
    const name = this.#nameOf(shard)
    const entry = this.#directory.get(name)
    if (this.#indexes === undefined || entry === undefined) {
      throw new ReplicaError('not_hosted', `this node has no indexes of ${describe(shard)}`)
    }
    return await this.#indexes.indexesOf({
      shard, history: entry.history, replica: engine, documents: engine, newest: () => engine.position(),
      isServed: () => this.#engines.get(name) === engine,
    }, creates)
  }

  /** Returns reads from memory of the indexes of a hosted shard; undefined until `indexes` was called. */
  immediateIndexes(shard: ShardId): ImmediateIndexReads | undefined {
    const entry = this.#directory.get(this.#nameOf(shard))
    return entry && this.#indexes?.immediate(entry.history)
  }

  /** Returns the builds of indexes that are running now. */
  indexBuilds(): readonly ShardIndexTask[] {
    return this.#indexes?.tasks() ?? []
  }

  /**
   * Hosts a shard. It is empty at first; if the node already hosts the shard, the existing replica is returned. Durable
   * when resolved.
   * @param partitioned whether the shard keeps counts and sizes of partitions
   * @throws ReplicaError `closed`, `overloaded`, `storage`
   */
  create(shard: ShardId, partitioned = false): Promise<ShardEngine> {
    const name = shardName(shard)
    return this.#changes.join(name, 'create', () => this.#create(name, shard, partitioned))
  }

  async #create(name: string, shard: ShardId, partitioned: boolean): Promise<ShardEngine> {
    const isNew = this.#closing === undefined && this.#directory.get(name) === undefined
    const added = isNew ? await this.#directory.add(shard, partitioned).catch(rethrow) : undefined
    if (added?.suspect) this.#reportLost(shard)
    return await this.open(shard)
  }

  /**
   * Drops a shard: refuses its calls at once and removes it from the directory. Durable when resolved. The space is
   * reclaimed in the background, also after a restart. Does nothing when the shard is not hosted.
   * @throws ReplicaError `closed`, `overloaded`, `storage`
   */
  drop(shard: ShardId): Promise<void> {
    const name = shardName(shard)
    return this.#changes.join(name, 'drop', () => this.#drop(name))
  }

  async #drop(name: string): Promise<void> {
    if (this.#closing !== undefined) throw closed()
    const entry = this.#directory.get(name)
    if (entry === undefined) return
    // Writes that were staged earlier are ahead of this one in the store's queue.
    await this.#withdraw(name, entry, 'was dropped', () => this.#directory.drop(name, entry)).catch(rethrow)
    this.#indexes?.remove(entry.history)
    this.#reclaimer.start()
  }

  /** Refuses calls for the shard from now on and ends the builds of its indexes, until `work` has ended. */
  async #withdraw<Result>(
    name: string, { shard, history }: DirectoryEntry, cause: string, work: () => Promise<Result>,
  ): Promise<Result> {
    const engine = this.#engines.get(name)
    this.#engines.delete(name)
    this.#withdrawn.add(name)
    this.#compactor.forget(shard)
    engine?.refuse(new ReplicaError('not_hosted', `the replica of ${describe(shard)} ${cause}`))
    this.#indexes?.endBuilds(history)
    try {
      return await work()
    } finally {
      this.#withdrawn.delete(name)
    }
  }

  /**
   * Replaces a damaged replica by a new incarnation with a new history, which contains every record whose checksum
   * holds. Calls for the shard wait meanwhile. Afterwards the caller must fetch what the new incarnation lacks from
   * other replicas.
   * @throws ReplicaError `closed`, `not_hosted`, `storage`; the old incarnation then continues unchanged
   */
  async rebuild(shard: ShardId): Promise<SalvageReport> {
    const name = shardName(shard)
    const newest = this.#changes.newest(name)
    if (newest === 'drop' || newest === 'rebuild') throw notHosted(shard)
    const report = await this.#changes.run(name, 'rebuild', () => this.#rebuild(name, shard)).catch(rethrow)
    this.#runtime.log.warn(
      { shard: describe(shard), ...report }, 'a damaged replica was rebuilt from its undamaged records',
    )
    this.#committed(shard, true, true)
    return report
  }

  async #rebuild(name: string, shard: ShardId): Promise<SalvageReport> {
    if (this.#closing !== undefined) throw closed()
    const before = this.#directory.get(name)
    if (before === undefined) throw notHosted(shard)
    try {
      return await this.#withdraw(name, before, 'is being rebuilt', () => rebuildShard({
        store: this.#store, directory: this.#directory, clock: this.#runtime.clock, signal: this.#abort.signal,
        engine: entry => this.#engine(entry, () => {}),
      }, before))
    } finally {
      if (this.#directory.get(name)?.history !== before.history) this.#indexes?.remove(before.history)
      this.#reclaimer.start()
    }
  }

  /** Waits until the space of every shard dropped so far is reclaimed, and that of its indexes. */
  async reclaimed(): Promise<void> {
    await Promise.all([this.#reclaimer.done(), this.#indexes?.removed()])
  }

  /** Refuses new calls, lets accepted writes finish and closes the store. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#abort.abort()
    for (const engine of this.#engines.values()) engine.refuse(closed())
    await this.#scrubber.stop()
    await this.#changes.ended()
    await this.#compactor.stop()
    await this.#reclaimer.done()
    await this.#indexes?.close()
    await this.blobs.close()
    // If writing the mark fails, the next start only compares more shards than necessary.
    await this.#directory.closeInOrder().catch((error: unknown) => {
      this.#runtime.log.warn({ error: String(error) }, 'the mark of a clean shutdown could not be written; '
        + 'at its next start this node compares its shards with those of its peers')
    })
    await this.#store.close()
  }

}

function rethrow(error: unknown): never {
  throw toReplicaError(error)
}

function closed(): ReplicaError {
  return new ReplicaError('closed', 'the node is shutting down')
}

function notHosted(shard: ShardId): ReplicaError {
  return new ReplicaError('not_hosted', `this node holds no replica of ${describe(shard)}`)
}

function describe(shard: ShardId): string {
  return shardName(shard).replace('\0', ' ')
}

function writeMetrics(metrics: Metrics): WriteMetrics {
  return {
    commits: metrics.counter('sectional_shard_commits_total', 'Calls that wrote to a shard and became durable.'),
    documents: metrics.counter(
      'sectional_shard_documents_written_total', 'Documents written, counted once for each replica and call.',
    ),
    commitDocuments: metrics.histogram(
      'sectional_shard_commit_documents', 'Documents in one durable call.', [], commitDocumentsBuckets,
    ),
  }
}
