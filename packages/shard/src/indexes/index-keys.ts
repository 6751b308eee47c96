/**
 * The layout of keys in the store of indexes. Only `place-bytes.ts` depends on it, too
 * (docs/decisions/0017-index-engine.md).
 *
 *     prefix(4) kind(1) rest
 *
 *     prefix 0: the directory of the store
 *       n                       next prefix to give out
 *       d owner id(64)          an index of a replica: its prefix and its definition
 *       x prefix(4)             a dropped index whose keys are being cleared
 *     prefix 1 and above: one index each
 *       m                       state of the index: position, version and counters
 *       r place                 a row
 *       i id                    the places and sizes of a document's rows
 *       f id                    the error with which the map function failed on a document
 *       p level(1) place        a page of summaries of rows
 *
 * A place is the text `key 00 00 id 00 00 number`, which has the order of rows. A 00 in a key or id is followed by a
 * 01, so the first 00 00 ends the key. A number below 0x78 is one character, a larger one 0x78 and four digits.
 */
import type { RowBound, RowPlace, RowRange } from '@sectional/core'
import { keyWord, lastKey, readKeyWord } from '@sectional/runtime'
import type { Range } from '@sectional/runtime'

const prefixLength = 4
const headLength = prefixLength + 1
const idLength = 64

const part = '\0\0'
/** In the place of `part`: behind all texts that continue with `part`, and before all others that are greater. */
const behindPart = '\0\u0001'
/** Greater than the characters of keys, each of which stands for a byte. */
const behindKeys = '\u0100'
const smallNumbers = 0x78

/** Less than or equal to every place. */
export const firstPlace = ''
/** Greater than every place. */
export const placesEnd = lastKey

/** Places as text: a range from `from` (inclusive) to `to` (exclusive). */
export interface PlaceRange { readonly from: string; readonly to: string }

/** The keys of one index. */
export class IndexKeys {
  readonly prefix: number
  readonly #start: string
  readonly #rows: string

  constructor(prefix: number) {
    this.prefix = prefix
    this.#start = keyWord(prefix)
    this.#rows = `${this.#start}r`
  }

  state(): string { return `${this.#start}m` }
  row(place: string): string { return this.#rows + place }
  document(id: string): string { return `${this.#start}i${id}` }
  failure(id: string): string { return `${this.#start}f${id}` }
  page(level: number, place: string): string { return `${this.#start}p${String.fromCharCode(level)}${place}` }

  rows({ from, to }: PlaceRange): Range { return { gte: this.#rows + from, lt: this.#rows + to } }
  failures(): Range { return { gte: `${this.#start}f`, lt: `${this.#start}g` } }
  pages(): Range { return { gte: `${this.#start}p`, lt: `${this.#start}q` } }
  all(): Range { return { gte: this.#start, lt: keyWord(this.prefix + 1) } }

  /** Returns where a page of summaries begins, given its key. */
  static readPage(key: string): { readonly level: number; readonly place: string } {
    return { level: key.charCodeAt(headLength), place: key.slice(headLength + 1) }
  }

  static prefixOf(key: string): number { return readKeyWord(key, 0) }

  /** Returns the place or id at the end of a key. */
  static text(key: string): string { return key.slice(headLength) }
}

/** The keys of the store's directory. */
export const directoryKeys = {
  nextPrefix: (): string => `${keyWord(0)}n`,
  index: (owner: string, id: string): string => `${keyWord(0)}d${owner}${id}`,
  indexes: (): Range => ({ gte: `${keyWord(0)}d`, lt: `${keyWord(0)}e` }),
  readIndex: (key: string): { readonly owner: string; readonly id: string } =>
    ({ owner: key.slice(headLength, -idLength), id: key.slice(-idLength) }),
  dropped: (prefix: number): string => `${keyWord(0)}x${keyWord(prefix)}`,
  allDropped: (): Range => ({ gte: `${keyWord(0)}x`, lt: `${keyWord(0)}y` }),
  readDropped: (key: string): number => readKeyWord(key, headLength),
}

/** Returns the text of a place. Places compared by UTF-8 have the order of `compareRows`. */
export function placeText({ key, id, number }: RowPlace): string {
  return documentPlace(key, id) + (number < smallNumbers
    ? String.fromCharCode(number)
    : String.fromCharCode(smallNumbers) + keyWord(number))
}

export function readPlace(place: string): RowPlace {
  const keyEnd = place.indexOf(part)
  const idEnd = place.indexOf(part, keyEnd + part.length)
  const at = idEnd + part.length
  const first = place.charCodeAt(at)
  return {
    key: unescapedKey(place.slice(0, keyEnd)),
    id: unescaped(place.slice(keyEnd + part.length, idEnd)),
    number: first < smallNumbers ? first : readKeyWord(place, at + 1),
  }
}

/**
 * Returns the shortest text with which a place begins and that is greater than a place before it. It divides no pair of
 * surrogates and no escape: its last character is greater than that of the other place, and therefore not 00.
 */
export function separatingPlace(before: string, place: string): string {
  const end = commonLength(before, place)
  return place.slice(0, isHighSurrogate(place.charCodeAt(end)) ? end + 2 : end + 1)
}

/** Returns the number of characters with which both texts begin. It divides no pair of surrogates. */
export function commonLength(a: string, b: string): number {
  let at = 0
  while (at < a.length && a.charCodeAt(at) === b.charCodeAt(at)) at++
  return at > 0 && at < a.length && isHighSurrogate(a.charCodeAt(at - 1)) ? at - 1 : at
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00
}

/** Returns the least text that is greater than a place. */
export function afterPlace(place: string): string {
  return `${place}\0`
}

export function placeRange({ lower, upper }: RowRange): PlaceRange {
  return {
    from: lower === undefined ? firstPlace : boundText(lower, !lower.inclusive),
    to: upper === undefined ? placesEnd : boundText(upper, upper.inclusive),
  }
}

/** Returns the range of the rows of a group, whose keys begin with it (`Indexer.groupOf`). */
export function groupRange(group: string): PlaceRange {
  const from = escapedKey(group)
  return { from, to: from + behindKeys }
}

/** Returns the range of the rows with a key. */
export function keyRange(key: string): PlaceRange {
  return placeRange({ lower: { key, inclusive: true }, upper: { key, inclusive: true } })
}

/** @param behind whether the text is behind the rows of the bound's key or document, or before them */
function boundText({ key, id }: RowBound, behind: boolean): string {
  const end = behind ? behindPart : part
  return escapedKey(key) + (id === undefined ? end : part + escaped(id) + end)
}

function documentPlace(key: string, id: string): string {
  return escapedKey(key) + part + escaped(id) + part
}

/** Sort keys up to this length are escaped in `keyBytes`. */
const shortKeyLength = 1024
const keyBytes = Buffer.alloc(2 * shortKeyLength)

/**
 * Escapes a sort key. Those of numbers contain many 00, for which `replaceAll` takes four times as long, and for long
 * keys a hundred times.
 */
function escapedKey(key: string): string {
  if (!key.includes('\0')) return key
  const bytes = key.length > shortKeyLength ? Buffer.allocUnsafe(2 * key.length) : keyBytes
  let length = 0
  for (let at = 0; at < key.length; at++) {
    const byte = key.charCodeAt(at)
    bytes[length++] = byte
    if (byte === 0) bytes[length++] = 1
  }
  return bytes.toString('latin1', 0, length)
}

function unescapedKey(text: string): string {
  if (text.length <= shortKeyLength) return unescaped(text)
  const bytes = Buffer.from(text, 'latin1')
  let length = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!
    bytes[length++] = byte
    // A 01 follows.
    if (byte === 0) at++
  }
  return bytes.toString('latin1', 0, length)
}

function escaped(text: string): string {
  return text.includes('\0') ? text.replaceAll('\0', '\0\u0001') : text
}

function unescaped(text: string): string {
  return text.includes('\0') ? text.replaceAll('\0\u0001', '\0') : text
}
