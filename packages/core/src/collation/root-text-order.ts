/**
 * Compares texts in root collation (docs/decisions/0015-collation.md). Most texts first differ at a printable ASCII
 * character, whose order is in a table; other texts are compared by their sort keys.
 */
import { ApiError } from '../errors.ts'
import { sortKeyBytesMax } from './key-bytes.ts'
import { SortKeyEncoder } from './sort-key.ts'

/** The printable ASCII characters in the order of their primary weights. Only letters of two cases have equal ones. */
const ascending = ' _-,;:!?.\'"()[]{}@*/\\&#%`^+<=>|~$0123456789aAbBcCdDeEfFgGhHiIjJkKlLmMnNoOpPqQrRsStTuUvVwWxXyYzZ'

/** The rank of the primary weight of each printable ASCII character, from 1; 0 for other characters. */
const ranks = Object.freeze(Array.from({ length: 128 }, (_, code) =>
  ascending.toLowerCase().indexOf(String.fromCharCode(code).toLowerCase()) + 1))

function rankOf(code: number): number {
  return code < 128 ? ranks[code]! : 0
}

/** Whether a text has printable ASCII characters only. Two such texts are equal only if they are identical. */
export function isPlainText(text: string): boolean {
  for (let at = 0; at < text.length; at++) if (rankOf(text.charCodeAt(at)) === 0) return false
  return true
}

/** Compares texts with one that does not change. */
export class ComparedText {
  readonly text: string
  readonly #order: RootTextOrder
  #key: string | undefined

  constructor(text: string, order: RootTextOrder) {
    this.text = text
    this.#order = order
  }

  /** Returns a negative number when this text is less than `other`, 0 when the collation regards them as equal. */
  readonly compare = (other: string): number => {
    const order = this.text === other ? 0 : comparePlainly(this.text, other)
    return order === undecided ? this.#compareByKeys(other) : order
  }

  #compareByKeys(other: string): number {
    const length = Math.max(this.text.length, other.length)
    if (length > pieceLength) return this.#order.compareByKeys(this.text, other)
    this.#key ??= this.#order.key(this.text)
    return compareKeys(this.#key, this.#order.key(other))
  }
}

export class RootTextOrder {
  /** Most orders never need it. */
  #encoder: SortKeyEncoder | undefined
  readonly #onKey: (characters: number) => void

  /** @param onKey called with the length of a text before its sort key is made, which takes some 50 ns a character */
  constructor(onKey: (characters: number) => void = () => {}) {
    this.#onKey = onKey
  }

  /** Returns a negative number when `a` is less than `b`, 0 when the collation regards them as equal. */
  readonly compare = (a: string, b: string): number => {
    const order = a === b ? 0 : comparePlainly(a, b)
    return order === undecided ? this.compareByKeys(a, b) : order
  }

  /**
   * Compares texts of any length. Two long texts are compared by their sort keys, as in an index, if they are short
   * enough for these. Otherwise texts are compared piece by piece.
   */
  compareByKeys(a: string, b: string): number {
    if (a.length > pieceLength && b.length > pieceLength) {
      try {
        return compareKeys(this.key(a), this.key(b))
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
      }
    }
    for (let at = 0; at < a.length || at < b.length; at += pieceLength) {
      const order = compareKeys(this.key(a.slice(at, at + pieceLength)), this.key(b.slice(at, at + pieceLength)))
      if (order !== 0) return order
    }
    return 0
  }

  /** Returns the sort key of a text. @throws ApiError `bad_request` when the text is too long for one */
  key(text: string): string {
    this.#onKey(text.length)
    this.#encoder ??= new SortKeyEncoder('root')
    return this.#encoder.encode(text)
  }
}

/** Longest text that certainly has a sort key: a character has at most a few bytes in it. */
const pieceLength = sortKeyBytesMax >> 5

function compareKeys(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** Not a result of a comparison of plain texts. */
const undecided = 0x7fffffff

/**
 * Compares two different texts up to their first difference of primary weights, or as a whole when both are plain.
 * Returns `undecided` when another character comes before that.
 */
function comparePlainly(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  let byCase = 0
  for (let at = 0; at < length; at++) {
    const left = a.charCodeAt(at)
    const right = b.charCodeAt(at)
    const rank = rankOf(left)
    const other = rankOf(right)
    if (rank === 0 || other === 0) return undecided
    if (rank !== other) return rank - other
    // A small letter, whose code is greater, is less than the capital one.
    if (byCase === 0) byCase = right - left
  }
  if (a.length === b.length) return byCase
  return rankOf((a.length > length ? a : b).charCodeAt(length)) === 0 ? undecided : a.length - b.length
}
