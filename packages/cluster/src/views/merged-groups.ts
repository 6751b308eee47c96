import type { ReducedGroup, RowSequence } from '@sectional/core'
import type { ViewGroup } from '../contracts/view-query.ts'

interface Merged {
  readonly lists: readonly RowSequence<ReducedGroup>[]
  readonly skip: number
  readonly limit: number | null
  readonly groups: readonly ViewGroup[]
}

/**
 * Keeps the merged groups of queries whose shards all answered from memory. A shard's memory gives the same list for a
 * query until its rows change or the list is dropped, so a result is used only for the very lists from which it was
 * made. It is forgotten with the first of them. The results thus need about as much memory at most as the lists
 * (`reductionCacheBytesMax` of the node's indexes), because a list belongs to one query but for `skip` and `limit`, of
 * which the last ones are kept.
 */
export class MergedGroups {
  /** By the list of the first shard. */
  readonly #results = new WeakMap<RowSequence<ReducedGroup>, Merged>()

  /** @param merge makes the groups of the lists */
  async* open(
    lists: readonly RowSequence<ReducedGroup>[], { skip, limit }: Pick<Merged, 'skip' | 'limit'>,
    merge: () => AsyncIterable<readonly ViewGroup[]>,
  ): AsyncGenerator<readonly ViewGroup[]> {
    const [first] = lists
    if (first === undefined) return
    const known = this.#results.get(first)
    if (known !== undefined && known.skip === skip && known.limit === limit && isSame(known.lists, lists)) {
      if (known.groups.length > 0) yield known.groups
      return
    }
    const groups: ViewGroup[] = []
    for await (const page of merge()) groups.push(...page)
    this.#results.set(first, { lists, skip, limit, groups })
    if (groups.length > 0) yield groups
  }
}

function isSame(a: Merged['lists'], b: Merged['lists']): boolean {
  return a.length === b.length && a.every((list, at) => list === b[at])
}
