import { compareUtf8, type FindRequest, ReplicaError, type ScannedPlace } from '@sectional/core'
import { placeRange, placeText } from '../index-keys.ts'
import { behindPlace } from '../index-scan.ts'
import type { RowTree } from '../row-tree.ts'
import type { KeyRows } from './key-rows.ts'

/** A row of an index, with its value only if its document is in the filter. */
export interface FilteredRow extends ScannedPlace { readonly value?: Uint8Array }

/**
 * Lists the rows that a request reads, in its order, run by run. They are filtered before their values are read.
 *
 * @param check throws when the call has ended
 */
export async function* filteredRows(
  tree: RowTree, filter: KeyRows, { source, descending, after }: FindRequest, check: () => void,
): AsyncGenerator<readonly FilteredRow[]> {
  if (source.kind !== 'index') throw new ReplicaError('protocol', 'the source is not an index')
  for (const [range, bounds] of source.ranges.entries()) {
    if (after !== undefined && range < after.range) continue
    const all = placeRange(bounds)
    const places = range === after?.range ? behindPlace(all, placeText(after), descending) : all
    if (compareUtf8(places.from, places.to) >= 0) continue
    for (let run = descending ? tree.runBefore(places.to) : tree.runAt(places.from); ;) {
      const rows = tree.rowsInMemory(run) ?? await tree.rows(run)
      check()
      const { first, end } = rows.bounds(places)
      const page: FilteredRow[] = []
      for (let step = 0; step < end - first; step++) {
        const at = descending ? end - 1 - step : first + step
        const { key, id, number } = rows.rowPlaceAt(at)
        const place = { range, key, id, number }
        const has = filter.has(id)
        page.push(has === true || has !== false && await has ? { ...place, value: rows.valueAt(at) } : place)
      }
      if (page.length > 0) yield page
      if (descending ? compareUtf8(run.from, places.from) <= 0 : compareUtf8(run.to, places.to) >= 0) break
      run = tree.nextRun(run, descending)
    }
  }
}
