/**
 * Maps the items with at most `limit` calls of `work` under way at a time, and begins them in the items' order.
 *
 * @returns the results in the order of the items
 * @throws the first failure, after all calls under way have settled; no further call begins after a failure
 */
export async function mapBounded<Item, Result>(
  items: readonly Item[], limit: number, work: (item: Item, index: number) => Promise<Result>,
): Promise<Result[]> {
  const results = new Array<Result>(items.length)
  let next = 0
  let failed = false
  const runner = async (): Promise<void> => {
    while (next < items.length && !failed) {
      const index = next++
      try {
        results[index] = await work(items[index]!, index)
      } catch (error) {
        failed = true
        throw error
      }
    }
  }
  const runners = await Promise.allSettled(Array.from({ length: Math.min(limit, items.length) }, runner))
  for (const outcome of runners) if (outcome.status === 'rejected') throw outcome.reason
  return results
}
