/** Reads of the sorted rows of an index: the rows and groups of ranges, in the order of the answer. */
import type { GroupPlace, IndexRead, RowBound, RowPlace, RowRange, ScannedPlace } from '../contracts/index-replica.ts'
import { groupOrder, scanOrder } from '../contracts/index-replica.ts'
import { compareUtf8 } from '../encoding/text-order.ts'
import type { StoredRow } from './index-content.ts'

export type FoundRow = StoredRow & ScannedPlace

/** The rows of a group, in the order of the index. */
export interface FoundGroup extends GroupPlace { readonly rows: readonly StoredRow[] }

export function readRows(
  rows: readonly StoredRow[], { ranges, descending, after, skip = 0, limit = Infinity }: IndexRead<ScannedPlace>,
): readonly FoundRow[] {
  const order = scanOrder(descending)
  const found = ranges.flatMap((bounds, range) =>
    rows.filter(row => isInRange(row, bounds)).map((row): FoundRow => ({ ...row, range }))).sort(order)
  return found.filter(row => after === undefined || order(row, after) > 0).slice(skip, skip + limit)
}

/** @param groupOf returns the name of a key's group */
export function readGroups(
  rows: readonly StoredRow[], { ranges, descending, after, skip = 0, limit = Infinity }: IndexRead<GroupPlace>,
  groupOf: (key: string) => string,
): readonly FoundGroup[] {
  const order = groupOrder(descending)
  const found = ranges.flatMap((bounds, range) => {
    const groups = Map.groupBy(rows.filter(row => isInRange(row, bounds)), ({ key }) => groupOf(key))
    return [...groups].map(([group, members]): FoundGroup => ({ range, group, rows: members }))
  }).sort(order)
  return found.filter(group => after === undefined || order(group, after) > 0).slice(skip, skip + limit)
}

/** Counts the rows before the first range in that direction. */
export function countBefore(rows: readonly RowPlace[], [first = {}]: readonly RowRange[], descending: boolean): number {
  return rows.filter(row => descending ? !isBelow(row, first.upper) : !isAbove(row, first.lower)).length
}

function isInRange(row: RowPlace, { lower, upper }: RowRange): boolean {
  return isAbove(row, lower) && isBelow(row, upper)
}

function isAbove(row: RowPlace, bound: RowBound | undefined): boolean {
  if (bound === undefined) return true
  const order = compareToBound(row, bound)
  return order > 0 || (order === 0 && bound.inclusive)
}

function isBelow(row: RowPlace, bound: RowBound | undefined): boolean {
  if (bound === undefined) return true
  const order = compareToBound(row, bound)
  return order < 0 || (order === 0 && bound.inclusive)
}

/** Returns 0 for a row of the bound's key, or of its key and document. */
function compareToBound({ key, id }: RowPlace, bound: RowBound): number {
  if (key !== bound.key) return key < bound.key ? -1 : 1
  return bound.id === undefined ? 0 : compareUtf8(id, bound.id)
}
