import { compareUtf8, type FindRequest, type IndexRow, type ScannedPlace } from '@sectional/core'
import { ReplicaError } from '@sectional/core'
import { groupRange, type PlaceRange, placeRange, placeText, readPlace } from '../index-keys.ts'
import { behindPlace } from '../index-scan.ts'
import type { RowTree } from '../row-tree.ts'
import type { RunRows } from '../run-rows.ts'

/** Successive rows whose keys agree in their first columns. */
export interface RowGroup {
  /** The value of the first row. */
  readonly value: IndexRow['value']
  /** The place of the last row. */
  readonly last: ScannedPlace
  /** The number of the rows. */
  readonly count: number
}

/** Returns the part of a key that rows of one group have in common. */
export type GroupOf = (key: string) => string

/**
 * Lists the rows that a request reads in groups, in ascending order. A group that extends beyond its run of rows is
 * counted by the summaries of the index, so that its other rows are not read; the groups within a run are found by
 * comparing its keys. A group may be divided into several successive ones.
 *
 * @param check throws when the call has ended
 */
export async function* groupedRows(
  tree: RowTree, groupOf: GroupOf, { source, after }: FindRequest, check: () => void,
): AsyncGenerator<readonly RowGroup[]> {
  if (source.kind !== 'index') throw new ReplicaError('protocol', 'the source is not an index')
  for (const [range, bounds] of source.ranges.entries()) {
    if (after !== undefined && range < after.range) continue
    const all = placeRange(bounds)
    let places = range === after?.range ? behindPlace(all, placeText(after), false) : all
    while (compareUtf8(places.from, places.to) < 0) {
      const run = tree.runAt(places.from)
      const rows = tree.rowsInMemory(run) ?? await tree.rows(run)
      check()
      const { first, end } = rows.bounds(places)
      const hasMore = compareUtf8(run.to, places.to) < 0
      let from = run.to
      if (first < end) {
        const group = groupOf(rows.rowPlaceAt(first).key)
        if (hasMore && groupOf(rows.rowPlaceAt(end - 1).key) === group) {
          const large = await largeGroup(tree, places, group)
          yield [{ ...large, value: rows.valueAt(first), last: { range, ...readPlace(large.last) } }]
          from = large.to
        } else yield smallGroups(rows, first, end, range, groupOf)
      }
      if (!hasMore && from === run.to) break
      places = { from, to: places.to }
    }
  }
}

/** Returns the end of the group with which a range begins, its last row and the number of its rows. */
async function largeGroup(
  tree: RowTree, range: PlaceRange, group: string,
): Promise<{ readonly to: string; readonly last: string; readonly count: number }> {
  const edge = groupRange(group).to
  const to = compareUtf8(edge, range.to) > 0 ? range.to : edge
  const last = await tree.endRow({ from: range.from, to }, true)
  const count = await tree.countBefore(to) - await tree.countBefore(range.from)
  return { to, last: last!.place, count }
}

/** Returns the groups of some rows of a run. */
function smallGroups(rows: RunRows, first: number, end: number, range: number, groupOf: GroupOf): readonly RowGroup[] {
  const groups: RowGroup[] = []
  let begin = first
  let place = rows.rowPlaceAt(first)
  let group = groupOf(place.key)
  for (let at = first + 1; at <= end; at++) {
    const next = at < end ? rows.rowPlaceAt(at) : undefined
    const nextGroup = next && groupOf(next.key)
    if (nextGroup !== group) {
      groups.push({ value: rows.valueAt(begin), last: { range, ...place }, count: at - begin })
      begin = at
      group = nextGroup ?? ''
    }
    place = next ?? place
  }
  return groups
}
