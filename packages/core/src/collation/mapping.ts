/**
 * Names the elements of a character or contraction: the index of the first one plus 1, times 64; twice their number;
 * and 1 for a character with which contractions start. 0 names nothing.
 */
export type Mapping = number

const mappingCountBits = 5

export function mappingStart(mapping: Mapping): number {
  return (mapping >>> mappingCountBits + 1) - 1
}

export function mappingCount(mapping: Mapping): number {
  return mapping >>> 1 & (1 << mappingCountBits) - 1
}

export function startsContraction(mapping: Mapping): boolean {
  return (mapping & 1) !== 0
}

export function mappingOf(start: number, count: number): Mapping {
  return start + 1 << mappingCountBits + 1 | count << 1
}

/** Code points of a block: blocks without a listed character share one. */
const blockBits = 6
const blockSize = 1 << blockBits
const codePointCount = 0x110000

/** The mappings of single code points, in blocks, of which the first one is that of blocks without any. */
export class MappingsByCodePoint {
  readonly #blocks = new Uint32Array(codePointCount >>> blockBits)
  readonly #mappings: Uint32Array
  /** The number of elements of all code points. */
  readonly elementCount: number

  /** @param counts number of elements of each code point; the elements lie one after the other, from the first one */
  constructor(codePoints: Uint32Array, counts: Uint32Array) {
    let size = blockSize
    for (const codePoint of codePoints) {
      if (this.#blocks[codePoint >>> blockBits] !== 0) continue
      this.#blocks[codePoint >>> blockBits] = size
      size += blockSize
    }
    this.#mappings = new Uint32Array(size)
    let start = 0
    for (let i = 0; i < codePoints.length; i++) {
      this.#mappings[this.#place(codePoints[i]!)] = mappingOf(start, counts[i]!)
      start += counts[i]!
    }
    this.elementCount = start
  }

  get(codePoint: number): Mapping {
    return this.#mappings[this.#place(codePoint)]!
  }

  markStart(codePoint: number): void {
    this.#mappings[this.#place(codePoint)]! |= 1
  }

  #place(codePoint: number): number {
    return this.#blocks[codePoint >>> blockBits]! + (codePoint & blockSize - 1)
  }
}
