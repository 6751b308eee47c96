import type { IndexDefinition, ReducedGroup, ReduceIndexRequest } from '@sectional/core'
import { compareUtf8 } from '@sectional/core'
import { placeRange, type PlaceRange } from './index-keys.ts'
import type { IndexSnapshot } from './index-snapshot.ts'
import type { Indexer } from './indexer.ts'
import { rowPlace, type RowReader, type StoredRow } from './row-reader.ts'
import { indexedRow, RowValues } from './row-values.ts'

/** The number of groups that are reduced together, and of a page. */
const pageGroups = 32

interface FoundGroup {
  readonly range: number
  readonly group: string
  readonly places: PlaceRange
  /** One of the rows of the group. */
  readonly row: StoredRow
}

/** Lists the groups of the ranges, without a head. @param check throws when the call has ended */
export async function* reduceIndex(
  snapshot: IndexSnapshot, definition: IndexDefinition, indexer: Indexer, request: ReduceIndexRequest,
  check: () => void,
): AsyncGenerator<readonly ReducedGroup[]> {
  const reader = snapshot.rows(check)
  const values = new RowValues(indexer, definition)
  const reduced = async (groups: readonly FoundGroup[]): Promise<readonly ReducedGroup[]> => {
    const found = await values.ofRanges(groups.map(({ places }) => reader.parts(places)))
    return groups.map(({ range, group, row }, at): ReducedGroup => ({
      kind: 'group', range, group,
      value: indexer.encodeGroup(definition, indexedRow(row), request.groupLevel, found[at]!),
    }))
  }
  let groups: FoundGroup[] = []
  for await (const group of findGroups(reader, (key, level) => indexer.groupOf(key, level, definition), request)) {
    check()
    groups.push(group)
    if (groups.length < pageGroups) continue
    yield await reduced(groups)
    groups = []
  }
  if (groups.length > 0) yield await reduced(groups)
}

/** Lists the groups that a request asks for, in its order. */
async function* findGroups(
  reader: RowReader, prefixOf: (key: string, level: number) => string,
  { ranges, descending, after, skip = 0, limit = Infinity, groupLevel }: ReduceIndexRequest,
): AsyncGenerator<FoundGroup> {
  const groupOf = (key: string): string =>
    groupLevel === 'exact' ? key : groupLevel === 0 ? '' : prefixOf(key, groupLevel)
  /** Returns the place in a range that separates a group from the groups behind it in the direction of the read. */
  const edgeOf = (group: string, places: PlaceRange, nearEnd: boolean): Promise<string> => reader.search(
    places, descending ? key => groupOf(key) >= group : key => groupOf(key) > group, nearEnd)
  let toSkip = skip
  let left = limit
  for (const [range, bounds] of ranges.entries()) {
    if (after !== undefined && range < after.range) continue
    let places = placeRange(bounds)
    if (range === after?.range) {
      places = without(places, await edgeOf(after.group, places, false), descending)
    }
    while (left > 0) {
      const row = await reader.endRow(places, descending)
      if (row === undefined) break
      const group = groupOf(rowPlace(row).key)
      const edge = groupLevel === 0 ? (descending ? places.from : places.to)
        : await edgeOf(group, places, descending)
      const rest = without(places, edge, descending)
      if (toSkip > 0) toSkip--
      else {
        left--
        const found = descending ? { from: rest.to, to: places.to } : { from: places.from, to: rest.from }
        yield { range, group, places: found, row }
      }
      places = rest
    }
  }
}

/** Returns the part of a range that is behind a place in the direction of the read, the place itself included. */
function without({ from, to }: PlaceRange, edge: string, descending: boolean): PlaceRange {
  const inside = compareUtf8(edge, from) < 0 ? from : compareUtf8(edge, to) > 0 ? to : edge
  return descending ? { from, to: inside } : { from: inside, to }
}
