/**
 * The root collation of Unicode CLDR: which collation elements a character or a sequence of characters has.
 *
 * An element has a primary weight of 32 bits (which letter), a secondary one of 16 bits (which accent) and a tertiary
 * one of 16 bits (which case or variant). The weights in `root-table.json` are those of ICU.
 * scripts/collation/README.md describes how the file is made.
 *
 * The decompressed table is a sequence of varints. Each list starts with its length. "Gaps" are the first number and
 * then the differences between neighbours.
 *
 *     compressible lead bytes
 *     ranges: gaps of starts, lengths, first primaries, steps
 *     combining classes: gaps of code points, leading classes, trailing classes
 *     primary weights: gaps
 *     lower weights (secondary * 2^16 + tertiary)
 *     elements: gaps of positions in the list of primary weights (2 * n; 2 * n - 1 for -n); positions in the list of
 *       lower weights
 *     characters: gaps of code points, numbers of elements
 *     contractions: number of code points, code points, number of elements
 *
 * The elements are those of the characters and then those of the contractions, in this order.
 */
import { gunzipSync } from 'node:zlib'
import { ContractionNode } from './contraction-node.ts'
import { primaryAtOffset, unassignedPrimary } from './implicit-weights.ts'
import { mappingOf, MappingsByCodePoint } from './mapping.ts'
import type { Mapping } from './mapping.ts'
import source from './root-table.json' with { type: 'json' }
import { NumberReader, signedSums, sums } from './table-numbers.ts'

/** The versions of the data from which the table was made. Sort keys of two versions must not be mixed in an index. */
export const rootCollationVersion = { icu: source.icu, unicode: source.unicode, collator: source.collator } as const

/** Consecutive code points with a single element each, whose primary weights are `step` places apart. */
interface WeightRange {
  readonly start: number
  readonly length: number
  readonly primary: number
  readonly step: number
}

/** For each first code point of contractions the trie of what follows it. */
type Contractions = ReadonlyMap<number, ContractionNode>

export class RootTable {
  /** For each lead byte of primary weights 1 if a sort key contains it once for several such weights in a row. */
  readonly compressible: Uint8Array
  /** Primary weights of all elements, as signed numbers. */
  readonly primaries: Int32Array
  /** Secondary weights times 2^16 plus tertiary weights of all elements. */
  readonly lowers: Int32Array
  readonly #ranges: readonly WeightRange[]
  /** For code points whose canonical decomposition starts with a combining mark (see `combiningClasses`). */
  readonly #combiningClasses: ReadonlyMap<number, number>
  readonly #mappings: MappingsByCodePoint
  readonly #contractions: Contractions

  /** @param numbers the decompressed table */
  constructor(numbers: NumberReader) {
    this.compressible = new Uint8Array(256)
    for (const lead of numbers.list()) this.compressible[lead] = 1
    this.#ranges = readRanges(numbers)
    this.#combiningClasses = readCombiningClasses(numbers)
    const weights = sums(numbers.list())
    const lowerWeights = numbers.list()
    const positions = signedSums(numbers.list())
    this.primaries = elementsAt(weights, positions)
    this.lowers = elementsAt(lowerWeights, numbers.take(positions.length))
    const codePoints = sums(numbers.list())
    this.#mappings = new MappingsByCodePoint(codePoints, numbers.take(codePoints.length))
    this.#contractions = readContractions(numbers, this.#mappings.elementCount)
    for (const start of this.#contractions.keys()) this.#mappings.markStart(start)
  }

  /** Returns 0 for a code point that the table does not list. */
  mapping(codePoint: number): Mapping {
    return this.#mappings.get(codePoint)
  }

  /** Returns the contractions that start with the code point. */
  contractionsFrom(codePoint: number): ContractionNode {
    return this.#contractions.get(codePoint)!
  }

  /**
   * Returns the canonical combining class of the first character of the code point's canonical decomposition times 256,
   * plus that of the last one; 0 if the first one is 0.
   */
  combiningClasses(codePoint: number): number {
    return this.#combiningClasses.get(codePoint) ?? 0
  }

  /** Returns the primary weight of a code point that is not listed and is no Hangul syllable. */
  computedPrimary(codePoint: number): number {
    const range = this.#rangeAt(codePoint)
    if (range === undefined) return unassignedPrimary(codePoint)
    const isCompressible = this.compressible[range.primary >>> 24] === 1
    return primaryAtOffset(range.primary, (codePoint - range.start) * range.step, isCompressible)
  }

  #rangeAt(codePoint: number): WeightRange | undefined {
    let low = 0
    let high = this.#ranges.length
    while (low < high) {
      const middle = low + high >>> 1
      if (this.#ranges[middle]!.start <= codePoint) low = middle + 1
      else high = middle
    }
    const range = this.#ranges[low - 1]
    return range !== undefined && codePoint < range.start + range.length ? range : undefined
  }
}

/** Decodes the table, which takes 20 to 40 ms. */
export function decodeRootTable(): RootTable {
  return new RootTable(new NumberReader(gunzipSync(Buffer.from(source.table, 'base64'))))
}

function readRanges(numbers: NumberReader): WeightRange[] {
  const starts = sums(numbers.list())
  const [lengths, primaries, steps] = [1, 2, 3].map(() => numbers.take(starts.length))
  return Array.from(starts, (start, i) => ({
    start, length: lengths![i]!, primary: primaries![i]!, step: steps![i]!,
  }))
}

function readCombiningClasses(numbers: NumberReader): Map<number, number> {
  const codePoints = sums(numbers.list())
  const leading = numbers.take(codePoints.length)
  const trailing = numbers.take(codePoints.length)
  return new Map(Array.from(codePoints, (codePoint, i) => [codePoint, leading[i]! * 256 + trailing[i]!]))
}

/** @param start index of the first element of contractions */
function readContractions(numbers: NumberReader, start: number): Contractions {
  const contractions = new Map<number, ContractionNode>()
  for (let left = numbers.next(); left > 0; left--) {
    const [first, ...rest] = numbers.list()
    const count = numbers.next()
    if (!contractions.has(first!)) contractions.set(first!, new ContractionNode())
    contractions.get(first!)!.add(rest, mappingOf(start, count))
    start += count
  }
  return contractions
}

function elementsAt(list: Uint32Array, positions: Uint32Array): Int32Array {
  // This loop is ten times as fast as Int32Array.from with a function.
  const found = new Int32Array(positions.length)
  for (let i = 0; i < positions.length; i++) found[i] = list[positions[i]!]!
  return found
}
