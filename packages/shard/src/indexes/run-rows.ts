import type { RowPlace } from '@sectional/core'
import { commonLength, type PlaceRange } from './index-keys.ts'
import { readPlaceBytes } from './place-bytes.ts'
import { SoughtPlace } from './place-search.ts'
import type { StoredRow } from './row-reader.ts'

/** Estimated bytes of memory of the objects of a run. */
const objectBytes = 300
/** Offsets that are below this take two bytes. */
const shortEnd = 0x10000
const wordBytes = 4

/**
 * The rows of a run in one piece of memory, which needs a quarter of what the objects would need. What all places begin
 * with is there once. Rows are decoded when they are read, so that a lookup decodes only the rows that it finds.
 *
 * The bytes are, with n rows:
 *
 *     what all places begin with
 *     n words of 4 bytes: with what the rest of each place begins, with 00 behind a rest that is shorter
 *     n + 1 offsets: where the rest of each place begins, and where the last one ends
 *     n + 1 offsets: the same for the values
 *     the rests of all places, all values
 *
 * A search compares words, and rests only where the words are equal. So it touches few lines of the processor's cache,
 * for which it would wait longer than for everything else.
 */
export class RunRows {
  readonly length: number
  /** The approximate size in memory. Every scan reads it, so it is not computed from other objects. */
  readonly bytes: number
  /** What all places begin with. */
  readonly #start: string
  readonly #bytes: Buffer
  /** Whether an offset takes four bytes, and not two. */
  readonly #isWide: boolean
  /** The number of bytes of `#start`. */
  readonly #startBytes: number

  /** @param rows ascending by place. They are copied */
  constructor(rows: readonly StoredRow[]) {
    const { length } = rows
    const startLength = length === 0 ? 0 : commonLength(rows[0]!.place, rows.at(-1)!.place)
    const start = rows[0]?.place.slice(0, startLength) ?? ''
    const rests = rows.map(({ place }) => place.slice(startLength))
    const words = wordBytes * length
    const startBytes = Buffer.byteLength(start)
    const content = rows.reduce((sum, { value }) => sum + value.length, 0)
      + rests.reduce((sum, rest) => sum + Buffer.byteLength(rest), 0)
    const offsetCount = 2 * (length + 1)
    this.#isWide = startBytes + words + 2 * offsetCount + content >= shortEnd
    this.length = length
    this.#start = start
    this.#startBytes = startBytes
    let offset = startBytes + words + (this.#isWide ? 4 : 2) * offsetCount
    // Not in the pool of Node.js: a part of the pool holds the memory of all of it, and may be kept for long.
    this.#bytes = Buffer.allocUnsafeSlow(offset + content)
    this.bytes = objectBytes + 2 * start.length + this.#bytes.length
    this.#bytes.write(start)
    for (const [at, rest] of rests.entries()) {
      this.#setOffset(at, offset)
      const end = offset + this.#bytes.write(rest, offset)
      const word = startBytes + wordBytes * at
      for (let i = 0; i < wordBytes; i++) this.#bytes[word + i] = offset + i < end ? this.#bytes[offset + i]! : 0
      offset = end
    }
    this.#setOffset(length, offset)
    for (const [at, { value }] of rows.entries()) {
      this.#setOffset(length + 1 + at, offset)
      this.#bytes.set(value, offset)
      offset += value.length
    }
    this.#setOffset(2 * length + 1, offset)
  }

  /** @param index from 0, below `length` */
  at(index: number): StoredRow {
    return new RunRow(this, index)
  }

  /** Decodes all rows. */
  toArray(): readonly StoredRow[] {
    return Array.from({ length: this.length }, (_, at) => ({ place: this.placeAt(at), value: this.valueAt(at) }))
  }

  /** @param index from 0, below `length` */
  rowPlaceAt(index: number): RowPlace {
    return readPlaceBytes(this.#bytes, 0, this.#startBytes, this.#offset(index), this.#offset(index + 1))
  }

  /** @param index from 0, below `length` */
  placeAt(index: number): string {
    return this.#start + this.#bytes.toString('utf8', this.#offset(index), this.#offset(index + 1))
  }

  /** @param index from 0, below `length` */
  valueAt(index: number): Uint8Array {
    const at = this.length + 1 + index
    return this.#bytes.subarray(this.#offset(at), this.#offset(at + 1))
  }

  /** Reads what the first comparisons of a search need, so that its memory is on its way to the processor. */
  touch(): number {
    const words = this.#startBytes
    const offsets = words + wordBytes * this.length
    return this.#bytes[0]! + this.#bytes[(words + offsets) >> 1]! + this.#bytes[offsets]!
  }

  /** Returns the index of the first row of a range, and that of the row behind its last one. */
  bounds({ from, to }: PlaceRange): { readonly first: number; readonly end: number } {
    const first = this.indexOf(new SoughtPlace(from))
    return { first, end: this.indexOf(new SoughtPlace(to), first) }
  }

  /** Returns the rows of a range. */
  within(range: PlaceRange): readonly StoredRow[] {
    const { first, end } = this.bounds(range)
    return Array.from({ length: end - first }, (_, at) => this.at(first + at))
  }

  /**
   * Returns the index of the first row at or behind a place; `length` when there is none.
   *
   * @param least the least index that is returned. It is tried first: most lookups end where they begin
   */
  indexOf(place: SoughtPlace, least = 0): number {
    return this.#search(place, 0, least)
  }

  /** Returns the number of rows at or before a place. */
  countTo(place: SoughtPlace): number {
    return this.#search(place, 1, 0)
  }

  /** Returns the index of the first row, from `least` on, whose `#compare` with the place is at least `order`. */
  #search({ bytes }: SoughtPlace, order: 0 | 1, least: number): number {
    const orderOfStart = this.#orderOfStart(bytes)
    if (orderOfStart !== 0) return orderOfStart < 0 ? least : this.length
    const word = readWord(bytes, this.#startBytes)
    if (least < this.length && this.#compare(least, bytes, word) >= order) return least
    let low = least + 1
    let high = this.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#compare(middle, bytes, word) >= order) high = middle
      else low = middle + 1
    }
    return Math.min(low, this.length)
  }

  /** Compares a place with `#start`. Returns 0 when it begins with it. */
  #orderOfStart(place: Buffer): number {
    const start = this.#startBytes
    return compareBytes(place, 0, Math.min(place.length, start), this.#bytes, 0, start)
  }

  /**
   * Compares a row with a place that begins with `#start`.
   *
   * @param word of the place
   * @returns below 0 when the row is before the place, 0 when it is there, above 0 when it is behind
   */
  #compare(index: number, place: Buffer, word: number): number {
    const start = this.#startBytes
    const own = readWord(this.#bytes, start + wordBytes * index)
    if (own !== word) return own - word
    return compareBytes(this.#bytes, this.#offset(index), this.#offset(index + 1), place, start, place.length)
  }

  #offset(index: number): number {
    const bytes = this.#bytes
    const from = this.#startBytes + wordBytes * this.length
    if (this.#isWide) return bytes.readUInt32LE(from + 4 * index)
    return bytes[from + 2 * index]! | bytes[from + 2 * index + 1]! << 8
  }

  #setOffset(index: number, offset: number): void {
    const from = this.#startBytes + wordBytes * this.length
    if (this.#isWide) this.#bytes.writeUInt32LE(offset, from + 4 * index)
    else this.#bytes.writeUInt16LE(offset, from + 2 * index)
  }
}

/** A row of a run. Its place and value are read from the memory of the run when they are needed. */
class RunRow implements StoredRow {
  readonly #run: RunRows
  readonly #index: number

  constructor(run: RunRows, index: number) {
    this.#run = run
    this.#index = index
  }

  get place(): string { return this.#run.placeAt(this.#index) }
  get value(): Uint8Array { return this.#run.valueAt(this.#index) }
}

/** Returns four bytes as an integer that has their order. Those behind the end of the bytes are 0. */
function readWord(bytes: Uint8Array, from: number): number {
  return (bytes[from]! << 24 | bytes[from + 1]! << 16 | bytes[from + 2]! << 8 | bytes[from + 3]!) >>> 0
}

/** Compares a part of `a` with a part of `b`. */
function compareBytes(
  a: Uint8Array, aFrom: number, aTo: number, b: Uint8Array, bFrom: number, bTo: number,
): number {
  const length = Math.min(aTo - aFrom, bTo - bFrom)
  for (let i = 0; i < length; i++) {
    const difference = a[aFrom + i]! - b[bFrom + i]!
    if (difference !== 0) return difference
  }
  return aTo - aFrom - (bTo - bFrom)
}
