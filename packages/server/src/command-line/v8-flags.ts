import { constants, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks'
import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from 'node:v8'

/** Bytes by which the old generation may grow between two collections, and the most as a part of the heap's limit. */
const growthBytes = 96 * 1024 * 1024
const growthOfLimit = 1 / 8
/** V8 itself, with a limit of some gigabytes, lets the old generation become at most four times as large. */
const growthPercentMax = 300
/** V8 lets it grow by this percentage when the program leaves little garbage there. */
const growthPercentMin = 30

/**
 * Sets the flags of V8 with which a node runs, for the whole process. Call it before the node is created.
 *
 * Allocation-site pretenuring is off (docs/decisions/0014-no-pretenuring.md): V8 counts, for each place of the program
 * that creates arrays and objects, how many of them survive a collection of the young generation, and may then allocate
 * all later ones of that place in the old generation. The pages of rows of a list are such arrays. In the old
 * generation, a page that is no longer used keeps its rows alive until the next collection of the whole heap, and each
 * collection of the young generation copies them.
 *
 * After each collection of the whole heap, the room that the next one waits for is chosen by `heapGrowthPercent`
 * (docs/decisions/0023-room-of-small-heaps.md).
 */
export function setV8Flags(setFlag: (flag: string) => void = setFlagsFromString): void {
  const { heap_size_limit: limit } = getHeapStatistics()
  const setHeapGrowth = (): void => setFlag(`--heap-growing-percent=${heapGrowthPercent(oldGenerationBytes(), limit)}`)
  setFlag('--no-allocation-site-pretenuring')
  setHeapGrowth()
  new PerformanceObserver(list => {
    if (list.getEntries().some(isMajor)) setHeapGrowth()
  }).observe({ entryTypes: ['gc'] })
}

/** Whether an entry is about a collection of the whole heap. */
function isMajor(entry: PerformanceEntry): boolean {
  const { detail } = entry as { readonly detail?: { readonly kind?: number } }
  return detail?.kind === constants.NODE_PERFORMANCE_GC_MAJOR
}

function oldGenerationBytes(): number {
  return getHeapSpaceStatistics().filter(({ space_name: name }) => !name.startsWith('new_'))
    .reduce((sum, { space_used_size: bytes }) => sum + bytes, 0)
}

/**
 * Returns by how many percent the old generation may grow until it is collected again.
 *
 * @param liveBytes its size after a collection
 * @param limitBytes the limit of the whole heap, at which the process ends
 * @returns the value of V8's flag `--heap-growing-percent`, whose 0 lets V8 choose
 */
export function heapGrowthPercent(liveBytes: number, limitBytes: number): number {
  const bytes = Math.min(growthBytes, growthOfLimit * limitBytes)
  const percent = Math.min(growthPercentMax, Math.ceil(100 * bytes / liveBytes))
  return percent < growthPercentMin ? 0 : percent
}
