import type { ShardId } from '@sectional/core'
import { formatRange, parseRange } from '@sectional/core'
import type { Random, Range, Store, StoreEntry, WriteBatch } from '@sectional/runtime'
import { keyWord, sealed, StorageError, unsealed } from '@sectional/runtime'
import { directoryKeys, prefixMax, ShardKeys } from '../records/key-layout.ts'

/** Where a shard lies in the store. */
export interface DirectoryEntry {
  readonly shard: ShardId
  /** Key prefix; given out once in the life of a store. */
  readonly prefix: number
  /** Names this life of this replica. */
  readonly history: string
  /** Counts and sizes of partitions are kept. */
  readonly partitioned: boolean
  /** It was added while the directory lacked entries, so it may stand for a replica whose documents are gone. */
  readonly suspect?: boolean
}

type StoredEntry = Pick<DirectoryEntry, 'prefix' | 'history' | 'suspect'> & { readonly partitioned?: boolean }

const format = 4
const wayOut = 'where other nodes hold the data, empty this node\'s data directory and start it under its name: it is filled from them (docs/operations.md)'
const historyBytes = 16
const pageEntries = 1000

/** Names a shard among those of one node. */
export function shardName(shard: ShardId): string {
  return `${shard.incarnation}\0${formatRange(shard.range)}`
}

function parseShardName(name: string): ShardId {
  const end = name.lastIndexOf('\0')
  return { incarnation: name.slice(0, end), range: parseRange(name.slice(end + 1)) }
}

/**
 * Which shards a store holds, under which key prefixes; durable. A prefix is never given out again, so the
 * keys of a dropped shard may be cleared at leisure, and again after a crash, while its name is in use anew.
 */
export class ShardDirectory {
  /** This process has made the store: there was none. */
  isNew = false
  readonly #store: Store
  readonly #random: Random
  readonly #entries = new Map<string, DirectoryEntry>()
  readonly #dropped = new Set<number>()
  #nextPrefix = 1
  /** Shards with lesser prefixes lived when writes were lost. */
  #suspectBelow = 0
  #incomplete = false
  /** Names of shards that are to be compared with their peers. */
  readonly #uncompared = new Set<string>()

  private constructor(store: Store, random: Random) {
    this.#store = store
    this.#random = random
  }

  static async open(store: Store, random: Random): Promise<ShardDirectory> {
    const directory = new ShardDirectory(store, random)
    try {
      await directory.#load()
      await directory.#takeMark()
      if (store.damage.length > 0) await directory.#suspectAll()
    } catch (error) {
      if (!(error instanceof StorageError) || error.code !== 'corrupt' || error.message.includes(wayOut)) throw error
      throw new StorageError('corrupt', `the document store is damaged: ${error.message}; ${wayOut}`, { cause: error })
    }
    return directory
  }

  get(name: string): DirectoryEntry | undefined {
    return this.#entries.get(name)
  }

  entries(): IterableIterator<DirectoryEntry> {
    return this.#entries.values()
  }

  /** Entries may be missing, since writes of the store are, or the store that was there before. */
  get incomplete(): boolean {
    return this.#incomplete
  }

  /** Says whether entries may be missing. Takes effect at once; durable when resolved. */
  async setIncomplete(incomplete: boolean): Promise<void> {
    this.#incomplete = incomplete
    await this.#store.write(batch => {
      if (incomplete) putJson(batch, directoryKeys.incomplete(), true)
      else batch.delete(directoryKeys.incomplete())
    })
  }

  /**
   * Shards that may lack writes which this node has acknowledged; they leave the list when they begin another life, or
   * are dropped.
   */
  suspects(): ShardId[] {
    return [...this.#entries.values()].filter(entry => this.#isSuspect(entry)).map(({ shard }) => shard)
  }

  /** Shards that have keys in a range, all of them where it reaches into what they share. */
  shardsIn({ gte, lt }: Range): ShardId[] {
    const shared = gte < keyWord(1)
    return [...this.#entries.values()].filter(({ prefix }) =>
      shared || (keyWord(prefix) < lt && gte < keyWord(prefix + 1))).map(({ shard }) => shard)
  }

  /**
   * The process that had the store before did not close it in order (it crashed, the power failed, a write had failed),
   * and this shard was not compared with its peers since.
   */
  isUncompared(name: string): boolean {
    return this.#uncompared.has(name)
  }

  /** The shard was compared with its peers, or has none. */
  compared(name: string): void {
    this.#uncompared.delete(name)
  }

  /**
   * Writes down that the store is closed in order, unless shards are still to be compared or a write has failed.
   * Nothing may be written afterwards. Durable when resolved.
   */
  async closeInOrder(): Promise<void> {
    if (this.#uncompared.size > 0 || this.#store.failures > 0) return
    await this.#store.write(batch => putJson(batch, directoryKeys.closedInOrder(), true))
  }

  /** The mark is gone from the disk before anything else is written, so that it never outlives a crash. */
  async #takeMark(): Promise<void> {
    const found = this.#store.getSync(directoryKeys.closedInOrder()) !== undefined
    if (found) await this.#store.write(batch => batch.delete(directoryKeys.closedInOrder()))
    if (!found) for (const name of this.#entries.keys()) this.#uncompared.add(name)
  }

  /** Prefixes whose keys wait to be cleared. */
  dropped(): readonly number[] {
    return [...this.#dropped]
  }

  #isSuspect({ prefix, suspect = false }: DirectoryEntry): boolean {
    return suspect || prefix < this.#suspectBelow
  }

  /** Durable when resolved. */
  async add(shard: ShardId, partitioned: boolean): Promise<DirectoryEntry> {
    const entry = { ...this.#nextLife(shard, partitioned), ...(this.#incomplete && { suspect: true }) }
    const name = shardName(shard)
    await this.#store.write(batch => {
      putEntry(batch, entry)
      putJson(batch, directoryKeys.nextPrefix(), this.#nextPrefix)
    })
    this.#entries.set(name, entry)
    if (entry.suspect) this.#uncompared.add(name)
    return entry
  }

  /** A prefix for another life of a shard, which a start clears unless `replace` has come. Durable when resolved. */
  async reserve({ shard, partitioned }: DirectoryEntry): Promise<DirectoryEntry> {
    const entry = this.#nextLife(shard, partitioned)
    await this.#store.write(batch => {
      batch.put(directoryKeys.dropped(entry.prefix), new Uint8Array(0))
      putJson(batch, directoryKeys.nextPrefix(), this.#nextPrefix)
    })
    return entry
  }

  /**
   * The reserved life is the shard's from now on, and the keys of the one before it are to be cleared. When it fails,
   * either may be on the disk.
   */
  async replace(before: DirectoryEntry, after: DirectoryEntry): Promise<void> {
    await this.#store.write(batch => {
      putEntry(batch, after)
      batch.delete(directoryKeys.dropped(after.prefix))
      batch.put(directoryKeys.dropped(before.prefix), new Uint8Array(0))
    })
    this.#entries.set(shardName(after.shard), after)
    this.#dropped.add(before.prefix)
  }

  /** The keys of a reserved life are to be cleared. */
  abandon({ prefix }: DirectoryEntry): void {
    this.#dropped.add(prefix)
  }

  #nextLife(shard: ShardId, partitioned: boolean): DirectoryEntry {
    if (this.#nextPrefix > prefixMax) {
      throw new StorageError(
        'full', `all ${prefixMax} shard prefixes of this store are used up: move the node's data to a fresh one`,
      )
    }
    return {
      shard, prefix: this.#nextPrefix++, history: Buffer.from(this.#random.bytes(historyBytes)).toString('hex'),
      partitioned,
    }
  }

  /** Forgets the name at once; the keys are to be cleared afterwards. Durable when resolved. */
  async drop(name: string, { prefix }: DirectoryEntry): Promise<void> {
    await this.#store.write(batch => {
      batch.delete(directoryKeys.shard(name))
      batch.put(directoryKeys.dropped(prefix), new Uint8Array(0))
    })
    this.#entries.delete(name)
    this.#uncompared.delete(name)
    this.#dropped.add(prefix)
  }

  /** The keys of dropped shards are gone. */
  async reclaimed(prefixes: readonly number[]): Promise<void> {
    await this.#store.write(batch => {
      for (const prefix of prefixes) batch.delete(directoryKeys.dropped(prefix))
    })
    for (const prefix of prefixes) this.#dropped.delete(prefix)
  }

  async #load(): Promise<void> {
    const found = this.#store.getSync(directoryKeys.format())
    this.isNew = found === undefined
    if (found === undefined) {
      await this.#store.write(batch => batch.put(directoryKeys.format(), Buffer.from(String(format))))
    } else if (Buffer.from(found).toString() !== String(format)) {
      throw new StorageError(
        'corrupt',
        `the document store has format ${Buffer.from(found).toString()}; this version reads ${format}; ${wayOut}`,
      )
    }
    this.#nextPrefix = readJson<number>(this.#store.getSync(directoryKeys.nextPrefix())) ?? 1
    for await (const [key, value] of this.#scan(directoryKeys.shards())) {
      const shard = parseShardName(directoryKeys.shardName(key))
      const { prefix, history, partitioned = false, suspect } = readJson<StoredEntry>(value)!
      this.#entries.set(shardName(shard), { shard, prefix, history, partitioned, ...(suspect && { suspect }) })
    }
    this.#incomplete = this.#store.getSync(directoryKeys.incomplete()) !== undefined
    this.#suspectBelow = readJson<number>(this.#store.getSync(directoryKeys.suspectBelow())) ?? 0
    for await (const [key] of this.#scan(directoryKeys.allDropped())) {
      this.#dropped.add(directoryKeys.droppedPrefix(key))
    }
  }

  /**
   * Writes of any shard are missing, and entries of this directory with them. What has keys and no entry is to be
   * cleared, no prefix that has keys is given out again, and every shard is suspect until it begins another life.
   */
  async #suspectAll(): Promise<void> {
    const known = new Set([...this.#entries.values()].map(({ prefix }) => prefix))
    const lost: number[] = []
    for (let prefix = await this.#nextUsed(1); prefix !== undefined; prefix = await this.#nextUsed(prefix + 1)) {
      if (!known.has(prefix)) lost.push(prefix)
      this.#nextPrefix = Math.max(this.#nextPrefix, prefix + 1)
    }
    this.#suspectBelow = this.#nextPrefix
    this.#incomplete = true
    await this.#store.write(batch => {
      for (const prefix of lost) batch.put(directoryKeys.dropped(prefix), new Uint8Array(0))
      putJson(batch, directoryKeys.nextPrefix(), this.#nextPrefix)
      putJson(batch, directoryKeys.suspectBelow(), this.#suspectBelow)
      putJson(batch, directoryKeys.incomplete(), true)
    })
    for (const prefix of lost) this.#dropped.add(prefix)
    await this.#store.forgetDamage()
  }

  /** The least prefix from `from` on that has keys. */
  async #nextUsed(from: number): Promise<number | undefined> {
    if (from > prefixMax) return undefined
    const iterator = this.#store.iterate(ShardKeys.shards(from, prefixMax), { limit: 1, values: false })
    try {
      const [entry] = await iterator.next(1)
      return entry && ShardKeys.prefixOf(entry[0])
    } finally {
      await iterator.close()
    }
  }

  async *#scan(range: ReturnType<typeof directoryKeys.shards>): AsyncGenerator<StoreEntry> {
    const iterator = this.#store.iterate(range)
    try {
      for (let page = await iterator.next(pageEntries); page.length > 0; page = await iterator.next(pageEntries)) {
        yield* page
      }
    } finally {
      await iterator.close()
    }
  }
}

function putEntry(batch: WriteBatch, { shard, prefix, history, partitioned, suspect }: DirectoryEntry): void {
  const stored: StoredEntry = { prefix, history, ...(partitioned && { partitioned }), ...(suspect && { suspect }) }
  putJson(batch, directoryKeys.shard(shardName(shard)), stored)
}

function putJson(batch: WriteBatch, key: string, value: unknown): void {
  batch.put(key, sealed(Buffer.from(JSON.stringify(value))))
}

function readJson<T>(bytes: Uint8Array | undefined): T | undefined {
  if (bytes === undefined) return undefined
  const json = unsealed(bytes)
  if (json === undefined) {
    throw new StorageError('corrupt', `the directory of the document store is damaged: a checksum differs; ${wayOut}`)
  }
  return JSON.parse(Buffer.from(json).toString('utf8')) as T
}
