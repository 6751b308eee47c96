/** `Promise.all(items.map(work))` with at most `concurrencyMax` at once. The first failure rejects after the running ones ended. */
export async function mapBounded<T, R>(items: readonly T[], concurrencyMax: number, work: (item: T, index: number) => Promise<R>): Promise<R[]> {
  const results: R[] = new Array<R>(items.length)
  let next = 0
  let failed = false
  const lane = async (): Promise<void> => {
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
  const lanes = await Promise.allSettled(Array.from({ length: Math.min(concurrencyMax, items.length) }, lane))
  const rejected = lanes.find(outcome => outcome.status === 'rejected')
  if (rejected !== undefined) throw rejected.reason
  return results
}
