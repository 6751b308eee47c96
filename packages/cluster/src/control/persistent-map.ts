/**
 * An immutable map from strings to values, ordered by key (UTF-16). `with` and `without` return another map, which
 * shares all chunks but one with this map, and `differences` reads only chunks that are not shared. The cost of
 * changing one entry therefore hardly depends on the number of entries; it includes a copy of the list of chunks, which
 * has 1,500 pointers for 100,000 entries.
 */

/** A chunk with more entries than this is split into halves. */
const chunkEntriesMax = 128
/**
 * A chunk with fewer entries than this is merged into the chunk before it, if both together have at most half as many
 * entries as a full chunk.
 */
const chunkEntriesMin = 32

/** Never empty, and never changed once it is in a map. */
interface Chunk<Value> { readonly keys: readonly string[]; readonly values: readonly Value[] }

export interface Difference<Value> {
  readonly key: string
  /** Undefined when the entry is new. */
  readonly before: Value | undefined
  /** Undefined when the entry was removed. */
  readonly after: Value | undefined
}

export class PersistentMap<Value> implements ReadonlyMap<string, Value> {
  readonly size: number
  readonly #chunks: readonly Chunk<Value>[]

  private constructor(chunks: readonly Chunk<Value>[], size: number) {
    this.#chunks = chunks
    this.size = size
  }

  static empty<Value>(): PersistentMap<Value> { return new PersistentMap<Value>([], 0) }

  /** When two entries have the same key, the later one is kept. */
  static from<Value>(entries: Iterable<readonly [string, Value]>): PersistentMap<Value> {
    const sorted = [...new Map(entries)].sort(([a], [b]) => a < b ? -1 : 1)
    const chunks: Chunk<Value>[] = []
    for (let at = 0; at < sorted.length; at += chunkEntriesMax) {
      const part = sorted.slice(at, at + chunkEntriesMax)
      chunks.push({ keys: part.map(([key]) => key), values: part.map(([, value]) => value) })
    }
    return new PersistentMap(chunks, sorted.length)
  }

  get(key: string): Value | undefined {
    const chunk = this.#chunks[this.#chunkOf(key)]
    if (chunk === undefined) return undefined
    const at = lowerBound(chunk.keys, key)
    return chunk.keys[at] === key ? chunk.values[at] : undefined
  }

  has(key: string): boolean {
    const chunk = this.#chunks[this.#chunkOf(key)]
    return chunk !== undefined && chunk.keys[lowerBound(chunk.keys, key)] === key
  }

  /** Returns a map with one entry added or replaced. */
  with(key: string, value: Value): PersistentMap<Value> {
    const at = this.#chunkOf(key)
    const { keys, values } = this.#chunks[at] ?? { keys: [], values: [] }
    const index = lowerBound(keys, key)
    if (keys[index] === key) {
      return values[index] === value
        ? this
        : new PersistentMap(this.#chunks.with(at, { keys, values: values.with(index, value) }), this.size)
    }
    const grown: Chunk<Value> = { keys: keys.toSpliced(index, 0, key), values: values.toSpliced(index, 0, value) }
    return new PersistentMap(this.#chunks.toSpliced(at, 1, ...halved(grown)), this.size + 1)
  }

  /** Returns a map without the entry, or this map when there is no such entry. */
  without(key: string): PersistentMap<Value> {
    const at = this.#chunkOf(key)
    const chunk = this.#chunks[at]
    const index = chunk === undefined ? -1 : lowerBound(chunk.keys, key)
    if (chunk === undefined || chunk.keys[index] !== key) return this
    const left: Chunk<Value> = { keys: chunk.keys.toSpliced(index, 1), values: chunk.values.toSpliced(index, 1) }
    return new PersistentMap(this.#shrunk(at, left), this.size - 1)
  }

  /** Returns the entries whose values differ between the two maps, in the order of their keys. */
  *differences(before: PersistentMap<Value>): Generator<Difference<Value>, void, undefined> {
    const old = new Cursor(before.#chunks)
    const now = new Cursor(this.#chunks)
    for (;;) {
      while (old.chunkAhead !== undefined && old.chunkAhead === now.chunkAhead) { old.skipChunk(); now.skipChunk() }
      const { key: oldKey } = old
      const { key: nowKey } = now
      if (oldKey === undefined && nowKey === undefined) return
      if (nowKey === undefined || (oldKey !== undefined && oldKey < nowKey)) {
        yield { key: oldKey as string, before: old.take(), after: undefined }
      } else if (oldKey === undefined || nowKey < oldKey) yield { key: nowKey, before: undefined, after: now.take() }
      else {
        const [was, is] = [old.take() as Value, now.take() as Value]
        if (was !== is) yield { key: nowKey, before: was, after: is }
      }
    }
  }

  *entries(): Generator<[string, Value], undefined, undefined> {
    for (const { keys, values } of this.#chunks) {
      for (let at = 0; at < keys.length; at += 1) yield [keys[at] as string, values[at] as Value]
    }
  }

  *keys(): Generator<string, undefined, undefined> { for (const { keys } of this.#chunks) yield* keys }

  *values(): Generator<Value, undefined, undefined> { for (const { values } of this.#chunks) yield* values }

  [Symbol.iterator](): Generator<[string, Value], undefined, undefined> { return this.entries() }

  forEach(callback: (value: Value, key: string, map: ReadonlyMap<string, Value>) => void): void {
    for (const [key, value] of this.entries()) callback(value, key, this)
  }

  #shrunk(at: number, left: Chunk<Value>): readonly Chunk<Value>[] {
    if (left.keys.length === 0) return this.#chunks.toSpliced(at, 1)
    const previous = this.#chunks[at - 1]
    if (previous === undefined || left.keys.length >= chunkEntriesMin
      || previous.keys.length + left.keys.length > chunkEntriesMax / 2) {
      return this.#chunks.with(at, left)
    }
    return this.#chunks.toSpliced(at - 1, 2, {
      keys: [...previous.keys, ...left.keys], values: [...previous.values, ...left.values],
    })
  }

  /** The index of the last chunk that begins at or before the key, or else of the first chunk. */
  #chunkOf(key: string): number {
    const chunks = this.#chunks
    let low = 0
    let high = chunks.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((chunks[middle]!.keys[0] as string) <= key) low = middle + 1
      else high = middle
    }
    return Math.max(0, low - 1)
  }
}

/** A position in a list of chunks. */
class Cursor<Value> {
  readonly #chunks: readonly Chunk<Value>[]
  #chunk = 0
  #index = 0

  constructor(chunks: readonly Chunk<Value>[]) { this.#chunks = chunks }

  /** The chunk whose first entry is the next one; undefined inside a chunk. */
  get chunkAhead(): Chunk<Value> | undefined { return this.#index === 0 ? this.#chunks[this.#chunk] : undefined }

  get key(): string | undefined { return this.#chunks[this.#chunk]?.keys[this.#index] }

  skipChunk(): void {
    this.#chunk += 1
    this.#index = 0
  }

  take(): Value | undefined {
    const chunk = this.#chunks[this.#chunk]
    const value = chunk?.values[this.#index]
    this.#index += 1
    if (this.#index === chunk?.keys.length) this.skipChunk()
    return value
  }
}

function halved<Value>(chunk: Chunk<Value>): Chunk<Value>[] {
  const { keys, values } = chunk
  if (keys.length <= chunkEntriesMax) return [chunk]
  const middle = keys.length >> 1
  return [
    { keys: keys.slice(0, middle), values: values.slice(0, middle) },
    { keys: keys.slice(middle), values: values.slice(middle) },
  ]
}

/** The first index whose key is equal to or greater than the given one. */
function lowerBound(keys: readonly string[], key: string): number {
  let low = 0
  let high = keys.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((keys[middle] as string) < key) low = middle + 1
    else high = middle
  }
  return low
}
