/** The rows of an index, their order, and ranges of them. */
import { compareUtf8 } from '../../encoding/text-order.ts'

/**
 * The place of a row in the order of an index: by the bytes of its key, then by the bytes of its document's id, then by
 * its number. The order is the same on every replica of a shard.
 */
export interface RowPlace {
  /** A binary sort key: text with one character from U+0000 to U+00FF for each byte. */
  readonly key: string
  readonly id: string
  /** Number of the row within its document, from 0. */
  readonly number: number
}

/** The end of a range. Without `id` the bound is before or behind all rows of the key. */
export interface RowBound {
  readonly key: string
  readonly id?: string
  /** Whether the rows of the key (with `id`: of that document) belong to the range. */
  readonly inclusive: boolean
}

/** `lower` is the bound with the smaller key, in whichever direction the range is read. An absent bound is open. */
export interface RowRange { readonly lower?: RowBound; readonly upper?: RowBound }

/** The place of a row in a scan of several ranges. `range` is the index of the row's range in the request. */
export interface ScannedPlace extends RowPlace { readonly range: number }

/** The place of a group in a reduction of several ranges. */
export interface GroupPlace {
  readonly range: number
  /** A prefix of the keys of the group's rows, in the form of a key. */
  readonly group: string
}

/** Compares two rows by the order of an index. */
export function compareRows(a: RowPlace, b: RowPlace): number {
  return compareKeys(a.key, b.key) || compareUtf8(a.id, b.id) || a.number - b.number
}

/** Returns the comparison by which a scan in that direction orders its rows. Ranges keep the order of the request. */
export function scanOrder(descending: boolean): (a: ScannedPlace, b: ScannedPlace) => number {
  return descending
    ? (a, b) => a.range - b.range || compareRows(b, a)
    : (a, b) => a.range - b.range || compareRows(a, b)
}

/** Returns the comparison by which a reduction in that direction orders its groups. */
export function groupOrder(descending: boolean): (a: GroupPlace, b: GroupPlace) => number {
  return descending
    ? (a, b) => a.range - b.range || compareKeys(b.group, a.group)
    : (a, b) => a.range - b.range || compareKeys(a.group, b.group)
}

function compareKeys(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
