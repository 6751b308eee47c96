import type { PlaceRange } from './index-keys.ts'
import type { StoredRow } from './row-reader.ts'

/** Estimated bytes of memory of the objects of a run. */
const objectBytes = 400
/** For each row there are two offsets: where the rest of its place begins, and where its value begins. */
const offsetsOfRow = 2

/**
 * The rows of a run in one piece of memory, which needs a quarter of what the objects would need. What all places begin
 * with is there once. Rows are decoded when they are read, so that a lookup decodes only the rows that it finds.
 */
export class RunRows {
  /** What all places begin with, as text and as UTF-8. */
  readonly #start: string
  readonly #startBytes: Buffer
  /** The rest of each place, followed by the value of the row. */
  readonly #bytes: Buffer
  /** The offsets of all rows in `#bytes`, and at last its length. */
  readonly #offsets: Uint16Array | Uint32Array

  /** @param rows ascending by place. They are copied */
  constructor(rows: readonly StoredRow[]) {
    const startLength = rows.length === 0 ? 0 : commonLength(rows[0]!.place, rows.at(-1)!.place)
    this.#start = rows[0]?.place.slice(0, startLength) ?? ''
    this.#startBytes = Buffer.from(this.#start)
    const rests = rows.map(({ place }) => place.slice(startLength))
    const restBytes = rests.map(rest => Buffer.byteLength(rest))
    const size = rows.reduce((sum, { value }, at) => sum + restBytes[at]! + value.length, 0)
    this.#bytes = Buffer.allocUnsafe(size)
    this.#offsets = new (size < 0x10000 ? Uint16Array : Uint32Array)(offsetsOfRow * rows.length + 1)
    let offset = 0
    for (const [at, { value }] of rows.entries()) {
      this.#offsets[offsetsOfRow * at] = offset
      offset += this.#bytes.write(rests[at]!, offset)
      this.#offsets[offsetsOfRow * at + 1] = offset
      this.#bytes.set(value, offset)
      offset += value.length
    }
    this.#offsets[offsetsOfRow * rows.length] = offset
  }

  get length(): number { return (this.#offsets.length - 1) / offsetsOfRow }
  /** The approximate size in memory. */
  get bytes(): number { return objectBytes + 2 * this.#start.length + this.#bytes.length + this.#offsets.byteLength }

  /** @param index from 0, below `length` */
  at(index: number): StoredRow {
    const at = offsetsOfRow * index
    const [placeFrom, valueFrom, valueTo] = [this.#offsets[at]!, this.#offsets[at + 1]!, this.#offsets[at + 2]!]
    return new RunRow(this.#start, this.#bytes, placeFrom, valueFrom, valueTo)
  }

  /** Returns the index of the first row of a range, and that of the row behind its last one. */
  bounds({ from, to }: PlaceRange): { readonly first: number; readonly end: number } {
    const first = this.indexOf(from)
    return { first, end: Math.max(first, this.indexOf(to)) }
  }

  /** Returns the rows of a range. */
  within(range: PlaceRange): readonly StoredRow[] {
    const { first, end } = this.bounds(range)
    return Array.from({ length: end - first }, (_, at) => this.at(first + at))
  }

  /** Returns the index of the first row at or behind a place; `length` when there is none. */
  indexOf(place: string): number {
    const bytes = Buffer.from(place)
    const start = this.#startBytes
    const order = compareBytes(bytes, 0, Math.min(bytes.length, start.length), start, 0, start.length)
    if (order !== 0) return order < 0 ? 0 : this.length
    return this.#search(at => compareBytes(bytes, start.length, bytes.length,
      this.#bytes, this.#offsets[offsetsOfRow * at]!, this.#offsets[offsetsOfRow * at + 1]!) <= 0)
  }

  /** Returns the index of the first row that is behind; `length` when there is none. */
  find(isBehind: (row: StoredRow) => boolean): number {
    return this.#search(at => isBehind(this.at(at)))
  }

  #search(isBehind: (index: number) => boolean): number {
    let low = 0
    let high = this.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (isBehind(middle)) high = middle
      else low = middle + 1
    }
    return low
  }
}

/** A row of a run. Its place and value are read from the memory of the run when they are needed. */
class RunRow implements StoredRow {
  readonly #start: string
  readonly #bytes: Buffer
  readonly #placeFrom: number
  readonly #valueFrom: number
  readonly #valueTo: number

  constructor(start: string, bytes: Buffer, placeFrom: number, valueFrom: number, valueTo: number) {
    this.#start = start
    this.#bytes = bytes
    this.#placeFrom = placeFrom
    this.#valueFrom = valueFrom
    this.#valueTo = valueTo
  }

  get place(): string { return this.#start + this.#bytes.toString('utf8', this.#placeFrom, this.#valueFrom) }
  get value(): Uint8Array { return this.#bytes.subarray(this.#valueFrom, this.#valueTo) }
}

/** Returns the number of characters with which both texts begin. It divides no pair of surrogates. */
function commonLength(a: string, b: string): number {
  let at = 0
  while (at < a.length && a.charCodeAt(at) === b.charCodeAt(at)) at++
  return at > 0 && at < a.length && isHighSurrogate(a.charCodeAt(at - 1)) ? at - 1 : at
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00
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
