import type { ShardId } from '@sectional/core'
import { ReplicaError } from '@sectional/core'
import { Turns } from '@sectional/runtime'
import type {
  BlobStorage, Clock, Counter, Log, Metrics, Random, Storage, Store, StoreOptions,
} from '@sectional/runtime'
import { NodeBlobs } from './blobs/node-blobs.ts'
import type { CompactionOptions } from './compaction/compaction-options.ts'
import { Compactor } from './compaction/compactor.ts'
import type { CompactionTask } from './compaction/compactor.ts'
import { toReplicaError } from './calls/call-guard.ts'
import { FilterBudget } from './reading/id-filter.ts'
import { KeptDocumentsBudget } from './reading/kept-documents.ts'
import { prefixMax, ShardKeys } from './records/key-layout.ts'
import type { DamagedRecordError } from './records/damaged-record.ts'
import { rebuildShard } from './rebuild/shard-rebuild.ts'
import type { SalvageReport } from './rebuild/shard-salvage.ts'
import { defaultScrubOptions, Scrubber } from './scrub/scrubber.ts'
import type { ScrubOptions } from './scrub/scrubber.ts'
import { ShardDirectory, shardName } from './directory/shard-directory.ts'
import type { DirectoryEntry } from './directory/shard-directory.ts'
import { ShardEngine } from './engine/shard-engine.ts'
import { SpaceReclaimer } from './directory/space-reclaimer.ts'
import type { WriteMetrics } from './writing/shard-writer.ts'

export const documentStoreName = 'documents'
export const blobStoreName = 'attachments'
/**
 * Reads that miss LevelDB's block cache cost twice as much as those that hit it; each write buffer that goes to disk
 * has ids of all shards merged anew.
 */
const defaultOptions: StoreOptions = { cacheBytes: 64 * 1024 * 1024, writeBufferBytes: 64 * 1024 * 1024 }
/** For the ids of eight to twenty million documents. */
const filterBytesMax = 64 * 1024 * 1024
/** For the records of some 25,000 documents that are read again and again. */
const keptBytesMax = 32 * 1024 * 1024
const commitDocumentsBuckets = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]

export interface HostOptions {
  readonly store?: StoreOptions
  readonly compaction?: Partial<CompactionOptions>
  readonly scrub?: Partial<ScrubOptions>
}

/** Receives reports of damaged records and content; may be called more than once for one of them. */
export interface DamageListener {
  damagedReplica(shard: ShardId): void
  /** @param shards those of this node that name it */
  damagedBlob(hash: string, shards: readonly ShardId[]): void
}

/** The part of `Runtime` that the engines use. */
export interface ShardRuntime {
  readonly storage: Storage
  readonly blobs: BlobStorage
  readonly clock: Clock
  /** Those that the node shares; by default the shards have turns of their own. */
  readonly turns?: Turns
  readonly random: Random
  readonly metrics: Metrics
  readonly log: Log
}

/**
 * The shards that one node holds, in one store. Hosting a shard costs an entry in the directory; its engine
 * is made when it is first asked for.
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
  readonly #filterBudget = new FilterBudget(filterBytesMax)
  readonly #keptBudget = new KeptDocumentsBudget(keptBytesMax)
  readonly #commitListeners = new Set<(shard: ShardId, documents: boolean) => void>()
  readonly #scrubber: Scrubber
  readonly #damaged: Counter
  readonly #damageListeners = new Set<DamageListener>()
  readonly #missedListeners = new Set<(shard: ShardId) => void>()
  readonly #abort = new AbortController()
  readonly #rebuilding = new Map<string, Promise<void>>()
  readonly #engines = new Map<string, ShardEngine>()
  readonly #names = new WeakMap<ShardId, string>()
  readonly #creating = new Map<string, Promise<ShardEngine>>()
  readonly #dropping = new Map<string, Promise<void>>()
  #closing: Promise<void> | undefined

  private constructor(
    runtime: ShardRuntime, store: Store, directory: ShardDirectory, blobs: NodeBlobs,
    { compaction, scrub }: HostOptions,
  ) {
    this.blobs = blobs
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
   * Opens the node's document store and goes on clearing what was dropped before.
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
    return host
  }

  list(): ShardId[] {
    return Array.from(this.#directory.entries(), entry => entry.shard)
  }

  hosts(shard: ShardId): boolean { return this.#directory.get(this.#nameOf(shard)) !== undefined }

  /** The engine of a hosted shard. */
  replica(shard: ShardId): ShardEngine | undefined {
    const name = this.#nameOf(shard)
    const engine = this.#engines.get(name)
    if (engine !== undefined || this.#closing !== undefined || this.#dropping.has(name) || this.#rebuilding.has(name)) {
      return engine
    }
    const entry = this.#directory.get(name)
    if (entry === undefined) return undefined
    const created = this.#engine(entry, (committed, documents) => this.#committed(committed, documents))
    this.#engines.set(name, created)
    return created
  }

  #engine(entry: DirectoryEntry, onCommit: (shard: ShardId, documents: boolean) => void): ShardEngine {
    return new ShardEngine({
      store: this.#store, blobs: this.blobs, clock: this.#runtime.clock, turns: this.#turns, metrics: this.#metrics,
      compactor: this.#compactor,
      filterBudget: this.#filterBudget, keptBudget: this.#keptBudget, onCommit,
      onDamage: (shard, error) => this.#recordDamaged(shard, error),
      onMissed: shard => { for (const listener of this.#missedListeners) listener(shard) },
    }, entry)
  }

  /** Asked for every request, with the same objects again and again. */
  #nameOf(shard: ShardId): string {
    let name = this.#names.get(shard)
    if (name === undefined) this.#names.set(shard, name = shardName(shard))
    return name
  }

  /**
   * Calls back after each durable change of a shard's documents (`documents`) or only local documents. Returns an
   * unsubscribe function.
   */
  onCommit(listener: (shard: ShardId, documents: boolean) => void): () => void {
    this.#commitListeners.add(listener)
    return () => { this.#commitListeners.delete(listener) }
  }

  /** Acknowledged writes are missing on this disk: which shard they were of is not known. */
  #noteSuspects(damage: readonly string[]): void {
    const shards = this.#directory.suspects().length
    if (damage.length === 0 && shards === 0) return
    this.#damaged.add(shards)
    this.#runtime.log.error({ damage, shards }, 'writes that this node acknowledged are missing on its disk; each of its replicas is rebuilt where there are others')
  }

  /**
   * Whether entries of this node's shards may be missing on its disk. A replica that is created meanwhile is taken for
   * damaged: acknowledged documents may have been in the one whose entry is gone.
   */
  get incomplete(): boolean {
    return this.#directory.incomplete
  }

  /** Says whether they may be missing. Takes effect at once; durable when resolved. @throws StorageError */
  setIncomplete(incomplete: boolean): Promise<void> {
    return this.#directory.setIncomplete(incomplete)
  }

  /** This process has made the document store: there was none. */
  get isNew(): boolean {
    return this.#directory.isNew
  }

  #reportLost(shard: ShardId): void {
    this.#damaged.add()
    this.#runtime.log.error({ shard: describe(shard) },
      'the replica of a shard is missing on this disk; it begins empty, and is filled where there are others')
    for (const listener of this.#damageListeners) listener.damagedReplica(shard)
  }

  async #checkFiles(contents: boolean, rest: () => Promise<void>): Promise<void> {
    for (const range of await this.#store.checkFiles(contents, rest)) {
      const shards = this.#directory.shardsIn(range)
      this.#damaged.add(Math.max(1, shards.length))
      this.#runtime.log.error(
        { shards: shards.map(describe) },
        'a table of the document store is damaged; the replicas in it are rebuilt where there are others',
      )
      for (const shard of shards) for (const listener of this.#damageListeners) listener.damagedReplica(shard)
    }
  }

  /**
   * Calls back when something on the disk is not what was written, and for what was found so before. Returns an
   * unsubscribe function.
   */
  onDamage(listener: DamageListener): () => void {
    this.#damageListeners.add(listener)
    for (const shard of this.#directory.suspects()) listener.damagedReplica(shard)
    return () => { this.#damageListeners.delete(listener) }
  }

  /** Whether the shard is to be compared with its peers, since the process that wrote it last did not end in order. */
  isUncompared(shard: ShardId): boolean {
    return this.#directory.isUncompared(this.#nameOf(shard))
  }

  /** The shard was compared with its peers, or has none. */
  compared(shard: ShardId): void {
    this.#directory.compared(this.#nameOf(shard))
  }

  /**
   * Calls back when a replica failed to store revisions or purges, or was told that it did. Returns an unsubscribe
   * function.
   */
  onMissed(listener: (shard: ShardId) => void): () => void {
    this.#missedListeners.add(listener)
    return () => { this.#missedListeners.delete(listener) }
  }

  #recordDamaged(shard: ShardId, error: DamagedRecordError): void {
    this.#damaged.add()
    this.#runtime.log.error(
      { shard: describe(shard), error: error.message },
      'a record on this disk is damaged; the replica is rebuilt where there are others',
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
      this.#runtime.log.warn({ blob: hash, error: String(error) }, 'damaged attachment content could not be looked up')
    }
  }

  #committed(shard: ShardId, documents: boolean): void {
    for (const listener of this.#commitListeners) listener(shard, documents)
  }

  /** Compactions that run now. */
  compactions(): readonly CompactionTask[] {
    return this.#compactor.tasks()
  }

  /** @throws ReplicaError `not_hosted`, `closed` */
  async open(shard: ShardId): Promise<ShardEngine> {
    if (this.#closing !== undefined) throw closed()
    const engine = this.replica(shard)
    if (engine === undefined) throw new ReplicaError('not_hosted', `this node holds no replica of ${describe(shard)}`)
    return engine
  }

  /**
   * Hosts a shard, empty at first; the one that is there when it is hosted already. Durable when resolved.
   * @param partitioned keep counts and sizes of partitions
   * @throws ReplicaError `closed`, `overloaded`, `storage`
   */
  create(shard: ShardId, partitioned = false): Promise<ShardEngine> {
    const name = shardName(shard)
    let creating = this.#creating.get(name)
    if (creating === undefined) {
      creating = this.#create(name, shard, partitioned).finally(() => this.#creating.delete(name))
      this.#creating.set(name, creating)
    }
    return creating
  }

  async #create(name: string, shard: ShardId, partitioned: boolean): Promise<ShardEngine> {
    await this.#rebuilding.get(name)
    await this.#dropping.get(name)
    const isNew = this.#closing === undefined && this.#directory.get(name) === undefined
    const added = isNew ? await this.#directory.add(shard, partitioned).catch(rethrow) : undefined
    if (added?.suspect) this.#reportLost(shard)
    return await this.open(shard)
  }

  /**
   * Refuses the shard's calls at once and forgets it; durable when resolved. Its space is reclaimed in the
   * background, and after a restart. Nothing happens when it is not hosted.
   * @throws ReplicaError `closed`, `overloaded`, `storage`
   */
  drop(shard: ShardId): Promise<void> {
    const name = shardName(shard)
    let dropping = this.#dropping.get(name)
    if (dropping === undefined) {
      dropping = this.#drop(name, shard).finally(() => this.#dropping.delete(name))
      this.#dropping.set(name, dropping)
    }
    return dropping
  }

  async #drop(name: string, shard: ShardId): Promise<void> {
    await this.#creating.get(name)
    await this.#rebuilding.get(name)
    if (this.#closing !== undefined) throw closed()
    const entry = this.#directory.get(name)
    if (entry === undefined) return
    const engine = this.#engines.get(name)
    this.#engines.delete(name)
    this.#compactor.forget(shard)
    engine?.refuse(new ReplicaError('not_hosted', `the replica of ${describe(shard)} was dropped`))
    // Writes that were staged before are ahead of this one in the store's queue.
    await this.#directory.drop(name, entry).catch(rethrow)
    this.#reclaimer.start()
  }

  /**
   * Begins another life of a replica, under another history, with everything of the present one whose checksums hold:
   * the way out when something in it is damaged. Its calls wait meanwhile. What it lacks then is to be fetched from
   * other replicas.
   * @throws ReplicaError `closed`, `not_hosted`, `storage`: it goes on as it was
   */
  async rebuild(shard: ShardId): Promise<SalvageReport> {
    const name = shardName(shard)
    if (this.#closing !== undefined) throw closed()
    if (this.#directory.get(name) === undefined || this.#dropping.has(name) || this.#rebuilding.has(name)) {
      throw new ReplicaError('not_hosted', `this node holds no replica of ${describe(shard)}`)
    }
    const work = this.#rebuild(name)
    this.#rebuilding.set(name, work.then(() => {}, () => {}))
    let report
    try {
      report = await work
    } catch (error) {
      rethrow(error)
    } finally {
      this.#rebuilding.delete(name)
    }
    this.#runtime.log.warn(
      { shard: describe(shard), ...report }, 'a damaged replica was rebuilt from what is sound in it',
    )
    this.#committed(shard, true)
    return report
  }

  async #rebuild(name: string): Promise<SalvageReport> {
    const before = this.#directory.get(name)!
    const engine = this.#engines.get(name)
    this.#engines.delete(name)
    this.#compactor.forget(before.shard)
    engine?.refuse(new ReplicaError('not_hosted', `the replica of ${describe(before.shard)} begins another life`))
    try {
      return await rebuildShard({
        store: this.#store, directory: this.#directory, clock: this.#runtime.clock, signal: this.#abort.signal,
        engine: entry => this.#engine(entry, () => {}),
      }, before)
    } finally {
      this.#reclaimer.start()
    }
  }

  /** Waits until the space of every shard dropped so far is reclaimed. */
  reclaimed(): Promise<void> {
    return this.#reclaimer.done()
  }

  /** Refuses calls from now on, lets accepted writes finish and closes the store. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#abort.abort()
    for (const engine of this.#engines.values()) engine.refuse(closed())
    await this.#scrubber.stop()
    await Promise.all(this.#rebuilding.values())
    await this.#compactor.stop()
    await Promise.allSettled([...this.#creating.values(), ...this.#dropping.values()])
    await this.#reclaimer.done()
    await this.blobs.close()
    // Without the mark the next start compares more than it has to, and nothing else.
    await this.#directory.closeInOrder().catch((error: unknown) => {
      this.#runtime.log.warn({ error: String(error) }, 'it could not be written down that this node stops in order; its next start compares its shards with those of its peers')
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
