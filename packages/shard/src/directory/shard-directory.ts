import type { ShardId } from '@sectional/core'
import { formatRange, parseRange } from '@sectional/core'
import type { Random, Range, Store, StoreEntry, WriteBatch } from '@sectional/runtime'
import { keyWord, sealed, StorageError, unsealed } from '@sectional/runtime'
import { directoryKeys, prefixMax, ShardKeys } from '../records/key-layout.ts'

/** The directory's entry of a shard: under which prefix its keys are stored, and what it keeps. */
export interface DirectoryEntry {
  readonly shard: ShardId
  /** The prefix of the shard's keys. A store never uses a prefix twice. */
  readonly prefix: number
  /** Identifies this incarnation of the replica; a rebuilt replica gets a new one. */
  readonly history: string
  /** True when the shard keeps counts and sizes of partitions. */
  readonly partitioned: boolean
  /**
   * True when the entry was added while the directory was incomplete. The shard may have had an earlier replica here
   * whose documents are lost.
   */
  readonly suspect?: boolean
}

type StoredEntry = Pick<DirectoryEntry, 'prefix' | 'history' | 'suspect'> & { readonly partitioned?: boolean }

const format = 4
const wayOut = 'if other nodes have replicas of the data, empty this node\'s data directory and start the node under '
  + 'the same name: it is filled from the other nodes (docs/operations.md)'
const historyBytes = 16
const pageEntries = 1000

/** Returns a string that identifies a shard among the shards of one node. */
export function shardName(shard: ShardId): string {
  return `${shard.incarnation}\0${formatRange(shard.range)}`
}

function parseShardName(name: string): ShardId {
  const end = name.lastIndexOf('\0')
  return { incarnation: name.slice(0, end), range: parseRange(name.slice(end + 1)) }
}

/**
 * Records durably which shards a store holds and under which key prefixes. A prefix is never reused. Therefore the keys
 * of a dropped shard can be cleared later, and again after a crash, even while a new shard of the same name exists.
 */
export class ShardDirectory {
  /** True when this process created the store because none existed. */
  isNew = false
  readonly #store: Store
  readonly #random: Random
  /** Shard name -> entry, as on the disk. */
  readonly #entries = new Map<string, DirectoryEntry>()
  /** Prefixes whose keys must still be cleared. */
  readonly #dropped = new Set<number>()
  /** Invariant: higher than every prefix that this store has ever used. */
  #nextPrefix = 1
  /** Shards with a prefix below this one existed when writes were lost. */
  #suspectBelow = 0
  #incomplete = false
  /** Names of the shards that must be compared with their peers. */
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

  /**
   * True when entries may be missing because the store lost writes, or because the store that was here before is gone.
   */
  get incomplete(): boolean {
    return this.#incomplete
  }

  /** Sets `incomplete`. Takes effect at once; durable when resolved. */
  async setIncomplete(incomplete: boolean): Promise<void> {
    this.#incomplete = incomplete
    await this.#store.write(batch => {
      if (incomplete) putJson(batch, directoryKeys.incomplete(), true)
      else batch.delete(directoryKeys.incomplete())
    })
  }

  /**
   * Returns the shards that may lack writes which this node acknowledged. A shard leaves the list when it is rebuilt or
   * dropped.
   */
  suspects(): ShardId[] {
    return [...this.#entries.values()].filter(entry => this.#isSuspect(entry)).map(({ shard }) => shard)
  }

  /** Returns the shards that have keys in a range; all shards when the range reaches into the keys that they share. */
  shardsIn({ gte, lt }: Range): ShardId[] {
    const shared = gte < keyWord(1)
    return [...this.#entries.values()].filter(({ prefix }) =>
      shared || (keyWord(prefix) < lt && gte < keyWord(prefix + 1))).map(({ shard }) => shard)
  }

  /**
   * True when the previous process did not close the store cleanly (it crashed, the power failed, or a write failed)
   * and the shard has not been compared with its peers since.
   */
  isUncompared(name: string): boolean {
    return this.#uncompared.has(name)
  }

  /** Call this after the shard was compared with its peers, or when it has no peers. */
  compared(name: string): void {
    this.#uncompared.delete(name)
  }

  /**
   * Writes the mark of a clean shutdown, unless shards must still be compared or a write has failed. Nothing may be
   * written afterwards. Durable when resolved.
   */
  async closeInOrder(): Promise<void> {
    if (this.#uncompared.size > 0 || this.#store.failures > 0) return
    await this.#store.write(batch => putJson(batch, directoryKeys.closedInOrder(), true))
  }

  /**
   * Removes the mark of a clean shutdown before anything else is written, so that a crash never leaves the mark behind.
   */
  async #takeMark(): Promise<void> {
    const found = this.#store.getSync(directoryKeys.closedInOrder()) !== undefined
    if (found) await this.#store.write(batch => batch.delete(directoryKeys.closedInOrder()))
    if (!found) for (const name of this.#entries.keys()) this.#uncompared.add(name)
  }

  /** Returns the prefixes whose keys must still be cleared. */
  dropped(): readonly number[] {
    return [...this.#dropped]
  }

  #isSuspect({ prefix, suspect = false }: DirectoryEntry): boolean {
    return suspect || prefix < this.#suspectBelow
  }

  /** Adds an entry for a new replica. Durable when resolved. @throws StorageError */
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

  /**
   * Reserves a prefix for a new incarnation of a shard. If `replace` is never called, the next start clears the prefix.
   * Durable when resolved.
   */
  async reserve({ shard, partitioned }: DirectoryEntry): Promise<DirectoryEntry> {
    const entry = this.#nextLife(shard, partitioned)
    await this.#store.write(batch => {
      batch.put(directoryKeys.dropped(entry.prefix), new Uint8Array(0))
      putJson(batch, directoryKeys.nextPrefix(), this.#nextPrefix)
    })
    return entry
  }

  /**
   * Makes the reserved incarnation the current one and marks the keys of the old one to be cleared. When the write
   * fails, either of the two may be on the disk.
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

  /** Marks the keys of a reserved incarnation to be cleared. */
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
      shard, prefix: this.#nextPrefix++, history: this.#newHistory(), partitioned,
    }
  }

  #newHistory(): string {
    return Buffer.from(this.#random.bytes(historyBytes)).toString('hex')
  }

  /** Removes the shard from the directory and marks its keys to be cleared. Durable when resolved. */
  async drop(name: string, { prefix }: DirectoryEntry): Promise<void> {
    await this.#store.write(batch => {
      batch.delete(directoryKeys.shard(name))
      batch.put(directoryKeys.dropped(prefix), new Uint8Array(0))
    })
    this.#entries.delete(name)
    this.#uncompared.delete(name)
    this.#dropped.add(prefix)
  }

  /** Call this after the keys of these dropped shards were cleared. */
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
   * Handles a store that has lost writes. Writes of any shard may be missing, and entries of this directory too. Marks
   * keys without an entry to be cleared, reuses no prefix that has keys, and suspects every shard until it is rebuilt.
   *
   * Each shard begins a new history at once, because the sequences of lost writes will be assigned again, and forgets
   * what it knows of other replicas' changes, because it may lack some of them.
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
    const entries = [...this.#entries.values()].map(entry => ({ ...entry, history: this.#newHistory() }))
    const forgotten: string[] = []
    for (const { prefix } of entries) {
      const keys = new ShardKeys(prefix)
      for (const kind of ['a', 'c', 'g'] as const) {
        for await (const [key] of this.#scan(keys.kind(kind))) forgotten.push(key)
      }
    }
    await this.#store.write(batch => {
      for (const key of forgotten) batch.delete(key)
      for (const entry of entries) putEntry(batch, entry)
      for (const prefix of lost) batch.put(directoryKeys.dropped(prefix), new Uint8Array(0))
      putJson(batch, directoryKeys.nextPrefix(), this.#nextPrefix)
      putJson(batch, directoryKeys.suspectBelow(), this.#suspectBelow)
      putJson(batch, directoryKeys.incomplete(), true)
    })
    for (const entry of entries) this.#entries.set(shardName(entry.shard), entry)
    for (const prefix of lost) this.#dropped.add(prefix)
    await this.#store.forgetDamage()
  }

  /** Returns the smallest prefix at or above `from` that has keys. */
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
