import { compareUtf8 } from '@sectional/core'
import type { IterateOptions, Range, Store, StoreEntry } from '@sectional/runtime'

/**
 * Most entries that one call to the thread pool reads. The store ends a page earlier when its values are large. Larger
 * pages would live so long that V8's garbage collector copies them, which costs more than another call.
 */
export const pageEntries = 128

/** Least entries of a page. A scan for few rows reads few entries, and some more for rows that it skips. */
const smallestPage = 16

/**
 * Reads the pages of a range from a snapshot of the store. A range that ends before it begins is empty.
 *
 * @param wanted estimated number of rows after which the caller stops
 */
export async function* scanEntries(
  store: Store, range: Range, options: IterateOptions = {}, wanted = pageEntries,
): AsyncGenerator<readonly StoreEntry[]> {
  if (compareUtf8(range.gte, range.lt) >= 0) return
  const iterator = store.iterate(range, options)
  try {
    const count = Math.min(pageEntries, Math.max(smallestPage, wanted))
    for (let page = await iterator.next(count); page.length > 0; page = await iterator.next(count)) yield page
  } finally {
    await iterator.close()
  }
}
