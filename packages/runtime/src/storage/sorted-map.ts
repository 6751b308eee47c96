import { compareUtf8 } from '@sectional/core'
import type { StoreEntry } from './storage.ts'

/** A chunk with more entries than this is split in two. */
const chunkEntriesMax = 128

interface Chunk {
  /** The version of the map that may change this chunk in place. */
  readonly version: number
  readonly keys: string[]
  readonly values: Uint8Array[]
}

/**
 * A map from text to bytes, ordered by the UTF-8 bytes of the keys, with snapshots in O(1). It is a list of sorted
 * chunks; a chunk is copied on write while a snapshot shares it. Operations cost O(log n) plus the length of a chunk
 * and of the list.
 */
export class SortedMap {
  #version = 0
  #chunksVersion = 0
  #chunks: Chunk[] = []
  #size = 0

  get size(): number {
    return this.#size
  }

  get(key: string): Uint8Array | undefined {
    return valueIn(this.#chunks, key)
  }

  set(key: string, value: Uint8Array): void {
    if (this.#chunks.length === 0) {
      this.#size = 1
      return this.#replace(0, 0, [{ version: this.#version, keys: [key], values: [value] }])
    }
    const at = chunkAt(this.#chunks, key)
    const chunk = this.#own(at)
    const index = lowerBound(chunk.keys, key)
    if (isKeyAt(chunk, index, key)) {
      chunk.values[index] = value
      return
    }
    chunk.keys.splice(index, 0, key)
    chunk.values.splice(index, 0, value)
    this.#size++
    if (chunk.keys.length > chunkEntriesMax) this.#split(at, index === chunk.keys.length - 1)
  }

  delete(key: string): void {
    const at = chunkAt(this.#chunks, key)
    const found = this.#chunks[at]
    if (found === undefined) return
    const index = lowerBound(found.keys, key)
    if (!isKeyAt(found, index, key)) return
    this.#size--
    if (found.keys.length === 1) return this.#replace(at, 1, [])
    const chunk = this.#own(at)
    chunk.keys.splice(index, 1)
    chunk.values.splice(index, 1)
  }

  /** Returns another map with the same entries. Chunks are shared until one of the maps changes them. */
  copy(): SortedMap {
    const copy = new SortedMap()
    copy.#chunks = this.#chunks
    copy.#size = this.#size
    copy.#chunksVersion = this.#version
    copy.#version = ++this.#version
    return copy
  }

  /** Returns the current entries; later writes do not change the snapshot. */
  snapshot(): SortedSnapshot {
    this.#version++
    return new SortedSnapshot(this.#chunks)
  }

  /** Splits a chunk in two. When keys arrive in ascending order, the left chunk stays nearly full. */
  #split(at: number, ascending: boolean): void {
    const { keys, values } = this.#own(at)
    const middle = ascending ? keys.length - 1 : keys.length >> 1
    const right: Chunk = { version: this.#version, keys: keys.splice(middle), values: values.splice(middle) }
    this.#replace(at + 1, 0, [right])
  }

  #replace(at: number, count: number, chunks: Chunk[]): void {
    this.#ownList().splice(at, count, ...chunks)
  }

  #own(at: number): Chunk {
    const chunk = this.#chunks[at] as Chunk
    if (chunk.version === this.#version) return chunk
    const copy: Chunk = { version: this.#version, keys: chunk.keys.slice(), values: chunk.values.slice() }
    this.#ownList()[at] = copy
    return copy
  }

  #ownList(): Chunk[] {
    if (this.#chunksVersion !== this.#version) {
      this.#chunks = this.#chunks.slice()
      this.#chunksVersion = this.#version
    }
    return this.#chunks
  }
}

/** An immutable view of the entries at one time. */
export class SortedSnapshot {
  readonly #chunks: readonly Chunk[]

  constructor(chunks: readonly Chunk[]) {
    this.#chunks = chunks
  }

  get(key: string): Uint8Array | undefined {
    return valueIn(this.#chunks, key)
  }

  /** Iterates over the entries of [gte, lt) in order. */
  * ascending(gte: string, lt: string): Generator<StoreEntry, void, undefined> {
    const start = chunkAt(this.#chunks, gte)
    for (let at = start; at < this.#chunks.length; at++) {
      const { keys, values } = this.#chunks[at] as Chunk
      for (let index = at === start ? lowerBound(keys, gte) : 0; index < keys.length; index++) {
        const key = keys[index] as string
        if (compareUtf8(key, lt) >= 0) return
        yield [key, values[index] as Uint8Array]
      }
    }
  }

  /** Iterates over the entries of [gte, lt) in reverse order. */
  * descending(gte: string, lt: string): Generator<StoreEntry, void, undefined> {
    const start = Math.min(chunkAt(this.#chunks, lt), this.#chunks.length - 1)
    for (let at = start; at >= 0; at--) {
      const { keys, values } = this.#chunks[at] as Chunk
      for (let index = (at === start ? lowerBound(keys, lt) : keys.length) - 1; index >= 0; index--) {
        const key = keys[index] as string
        if (compareUtf8(key, gte) < 0) return
        yield [key, values[index] as Uint8Array]
      }
    }
  }
}

function valueIn(chunks: readonly Chunk[], key: string): Uint8Array | undefined {
  const chunk = chunks[chunkAt(chunks, key)]
  if (chunk === undefined) return undefined
  const index = lowerBound(chunk.keys, key)
  return isKeyAt(chunk, index, key) ? chunk.values[index] : undefined
}

/** Returns the index of the last chunk that begins at or before the key; otherwise 0. */
function chunkAt(chunks: readonly Chunk[], key: string): number {
  let low = 0
  let high = chunks.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (compareUtf8((chunks[middle] as Chunk).keys[0] as string, key) <= 0) low = middle + 1
    else high = middle
  }
  return Math.max(0, low - 1)
}

/** Returns the first index whose key is at or after the given one. */
function lowerBound(keys: readonly string[], key: string): number {
  let low = 0
  let high = keys.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (compareUtf8(keys[middle] as string, key) < 0) low = middle + 1
    else high = middle
  }
  return low
}

function isKeyAt(chunk: Chunk, index: number, key: string): boolean {
  return chunk.keys[index] === key
}
