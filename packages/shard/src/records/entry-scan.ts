import { compareUtf8 } from '@sectional/core'
import type { IterateOptions, Range, Store, StoreEntry } from '@sectional/runtime'

/**
 * Entries read at one crossing to the thread pool; the store ends a page earlier when its values are large. Larger
 * pages live so long that V8's collector copies them, which costs more than crossing.
 */
export const pageEntries = 128

/** A scan that will stop after few rows reads few, and some more for those that it skips. */
const smallestPage = 16

/**
 * Pages of a range as of now. A range that ends before it begins is empty.
 * @param wanted rows after which the caller stops, as far as it knows
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
