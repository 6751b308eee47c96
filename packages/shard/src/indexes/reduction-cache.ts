import type { ReducedGroup, ReduceIndexRequest } from '@sectional/core'
import { NodePartCache } from './part-cache.ts'

/** Bytes of memory of all results of a node. */
export const reductionCacheBytesMax = 16 * 1024 * 1024
/** Results with more groups, and requests with more ranges, are not kept. */
const groupsMax = 1000
const rangesMax = 16
/** Estimated bytes of memory that a result and a group take besides their texts and values. */
const objectBytes = 200

/**
 * Whole results of reductions of the indexes of a node; those that were used last are kept. A result belongs to one
 * version of an index, and no other set of rows of any index in the store ever has that version. So a result never has
 * to be removed when rows change.
 */
export class ReductionCache {
  readonly #results: NodePartCache

  constructor(bytesMax = reductionCacheBytesMax) {
    this.#results = new NodePartCache(bytesMax)
  }

  /** @param version of the state of the index (`StoredState.version`) */
  get(version: string, request: ReduceIndexRequest): readonly ReducedGroup[] | undefined {
    const key = keyOf(version, request)
    return key === undefined ? undefined : this.#results.get(key) as readonly ReducedGroup[] | undefined
  }

  /**
   * Passes the pages of a reduction on, and keeps the groups if all pages were read.
   *
   * @param pages without a head
   */
  async* keep(
    version: string, request: ReduceIndexRequest, pages: AsyncIterable<readonly ReducedGroup[]>,
  ): AsyncGenerator<readonly ReducedGroup[]> {
    const key = keyOf(version, request)
    let groups: ReducedGroup[] | undefined = key === undefined ? undefined : []
    for await (const page of pages) {
      if (groups !== undefined) groups = groups.length + page.length > groupsMax ? undefined : [...groups, ...page]
      yield page
    }
    if (key === undefined || groups === undefined) return
    const bytes = groups.reduce((sum, { group, value }) => sum + group.length + value.length + objectBytes, objectBytes)
    this.#results.set(key, groups, bytes + key.length)
  }
}

/** Returns undefined for a request whose result is not kept. */
function keyOf(
  version: string, { ranges, descending, after, skip = 0, limit, groupLevel }: ReduceIndexRequest,
): string | undefined {
  if (ranges.length > rangesMax) return undefined
  return `${version} ${JSON.stringify([ranges, descending, after, skip, limit, groupLevel])}`
}
