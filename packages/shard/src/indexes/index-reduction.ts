import type { IndexDefinition, PageLimits, ReducedGroup, ReduceIndexRequest } from '@sectional/core'
import { compareUtf8 } from '@sectional/core'
import { firstPlace, groupRange, keyRange, placeRange, type PlaceRange, placesEnd } from './index-keys.ts'
import type { IndexSnapshot } from './index-snapshot.ts'
import type { Indexer } from './indexer.ts'
import type { KnownGroups } from './reduction-cache.ts'
import { rowBytes, rowPages, rowPlace, type RowReader, type StoredRow } from './row-reader.ts'
import { indexedRow, RowValues } from './row-values.ts'

/** The number of groups that are reduced together, and of a page. */
const pageGroups = 32

interface FoundGroup {
  readonly range: number
  readonly group: string
  /** The value, if it is known (`KnownGroup.value`). */
  readonly known?: Uint8Array
  readonly places: PlaceRange
  /** One of the rows of the group; absent if the value is known. */
  readonly row?: StoredRow
  /** Whether `places` have all rows of the group. False when this is not known. */
  readonly isWhole?: boolean
}

/**
 * Lists the groups of the ranges, without a head.
 *
 * @param known the groups of the same level and the state of the snapshot that need not be read
 * @param check throws when the call has ended
 * @param limits a page ends with the group whose row reaches the bytes
 */
export async function* reduceIndex(
  snapshot: Pick<IndexSnapshot, 'rows'>, definition: IndexDefinition, indexer: Indexer, request: ReduceIndexRequest,
  known: KnownGroups, check: () => void, { pageRows, pageBytes }: PageLimits = rowPages,
): AsyncGenerator<readonly ReducedGroup[]> {
  const reader = snapshot.rows(check)
  const values = new RowValues(indexer, definition)
  const valuesOf = async (groups: readonly FoundGroup[]): Promise<readonly Uint8Array[]> => {
    const read = groups.filter(group => group.known === undefined)
    const found = (await values.ofRanges(read.map(({ places }) => reader.parts(places)))).values()
    return groups.map(({ group, known: value, row, places: { from, to }, isWhole }) => {
      if (value !== undefined) return value
      const encoded = indexer.encodeGroup(definition, indexedRow(row!), request.groupLevel, found.next().value!)
      if (isWhole && !indexer.isFailure?.(definition, encoded)) known.add(from, { group, to, value: encoded })
      return encoded
    })
  }
  const reduced = async (groups: readonly FoundGroup[]): Promise<readonly ReducedGroup[]> => {
    const encoded = await valuesOf(groups)
    return groups.map(({ range, group }, at) => ({ kind: 'group', range, group, value: encoded[at]! }))
  }
  let groups: FoundGroup[] = []
  let bytes = 0
  const prefixOf = (key: string, level: number): string => indexer.groupOf(key, level, definition)
  for await (const group of findGroups(reader, prefixOf, request, known)) {
    check()
    groups.push(group)
    bytes += group.known?.length ?? rowBytes(group.row!)
    if (groups.length < Math.min(pageGroups, pageRows) && bytes < pageBytes) continue
    yield await reduced(groups)
    groups = []
    bytes = 0
  }
  if (groups.length > 0) yield await reduced(groups)
}

/** Lists the groups that a request asks for, in its order. */
async function* findGroups(
  reader: RowReader, prefixOf: (key: string, level: number) => string,
  { ranges, descending, after, skip = 0, limit = Infinity, groupLevel }: ReduceIndexRequest, known: KnownGroups,
): AsyncGenerator<FoundGroup> {
  const groupOf = (key: string): string =>
    groupLevel === 'exact' ? key : groupLevel === 0 ? '' : prefixOf(key, groupLevel)
  /** Returns the place that separates a group from the groups behind it in the direction of the read. */
  const edgeOf = (group: string): string => {
    const { from, to } = groupLevel === 'exact' ? keyRange(group) : groupRange(group)
    return descending ? from : to
  }
  let toSkip = skip
  let left = limit
  for (const [range, bounds] of ranges.entries()) {
    if (after !== undefined && range < after.range) continue
    let places = placeRange(bounds)
    if (range === after?.range) {
      places = without(places, edgeOf(after.group), descending)
    }
    /** Whether the range begins where a group does. Groups that begin elsewhere are not shared with other requests. */
    let beginsGroup = !descending && groupLevel !== 0 && places.from === firstPlace
    while (left > 0) {
      const shared = beginsGroup ? known.get(places.from) : undefined
      if (shared !== undefined && compareUtf8(shared.to, places.to) <= 0) {
        const { group, to, value } = shared
        if (toSkip > 0) toSkip--
        else {
          left--
          yield { range, group, known: value, places: { from: places.from, to } }
        }
        places = { from: to, to: places.to }
        continue
      }
      const row = await reader.endRow(places, descending)
      if (row === undefined) break
      const group = groupOf(rowPlace(row).key)
      const edge = edgeOf(group)
      const rest = without(places, edge, descending)
      if (toSkip > 0) toSkip--
      else {
        left--
        const found = descending ? { from: rest.to, to: places.to } : { from: places.from, to: rest.from }
        const endsGroup = places.to === placesEnd || compareUtf8(edge, places.to) < 0
        yield { range, group, places: found, row, isWhole: beginsGroup && endsGroup }
      }
      beginsGroup = !descending && groupLevel !== 0
      places = rest
    }
  }
}

/** Returns the part of a range that is behind a place in the direction of the read, the place itself included. */
function without({ from, to }: PlaceRange, edge: string, descending: boolean): PlaceRange {
  const inside = compareUtf8(edge, from) < 0 ? from : compareUtf8(edge, to) > 0 ? to : edge
  return descending ? { from, to: inside } : { from: inside, to }
}
