import type { ReducedGroup, RowSequence } from '@sectional/core'
import type { ViewGroup } from '../contracts/view-query.ts'
import { haveSameElements } from './same-elements.ts'

/** Bytes of memory of all merged groups of a node, and of the lists from which they were made. */
const mergedGroupsBytesMax = 16 * 1024 * 1024
/** Estimated bytes of memory that a result and a group take besides their texts and values. */
const objectBytes = 200

interface Merged {
  readonly lists: readonly RowSequence<ReducedGroup>[]
  readonly skip: number
  readonly limit: number | null
  readonly groups: readonly ViewGroup[]
  readonly bytes: number
}

/**
 * Keeps the merged groups of queries whose shards all answered from memory; those that were used last remain. A shard's
 * memory gives the same list for a query until its rows change or the list is dropped, so a result is used only for the
 * very lists from which it was made. A list belongs to one query but for `skip` and `limit`, of which the last ones are
 * kept.
 */
export class MergedGroups {
  readonly #bytesMax: number
  /** By the list of the first shard. The result that was used longest ago comes first. */
  readonly #results = new Map<RowSequence<ReducedGroup>, Merged>()
  /** The sum over `#results`. At most `#bytesMax`. */
  #bytes = 0

  constructor(bytesMax = mergedGroupsBytesMax) {
    this.#bytesMax = bytesMax
  }

  /** @param merge makes the groups of the lists */
  async* open(
    lists: readonly RowSequence<ReducedGroup>[], { skip, limit }: Pick<Merged, 'skip' | 'limit'>,
    merge: () => AsyncIterable<readonly ViewGroup[]>,
  ): AsyncGenerator<readonly ViewGroup[]> {
    const [first] = lists
    if (first === undefined) return
    const known = this.#results.get(first)
    if (known !== undefined && known.skip === skip && known.limit === limit && haveSameElements(known.lists, lists)) {
      this.#results.delete(first)
      this.#results.set(first, known)
      if (known.groups.length > 0) yield known.groups
      return
    }
    const groups: ViewGroup[] = []
    for await (const page of merge()) groups.push(...page)
    this.#keep(first, { lists, skip, limit, groups, bytes: bytesOf(groups) + lists.reduce(addBytes, 0) })
    if (groups.length > 0) yield groups
  }

  #keep(first: RowSequence<ReducedGroup>, merged: Merged): void {
    this.#drop(first)
    if (merged.bytes > this.#bytesMax) return
    this.#results.set(first, merged)
    this.#bytes += merged.bytes
    for (const oldest of this.#results.keys()) {
      if (this.#bytes <= this.#bytesMax) return
      this.#drop(oldest)
    }
  }

  #drop(first: RowSequence<ReducedGroup>): void {
    this.#bytes -= this.#results.get(first)?.bytes ?? 0
    this.#results.delete(first)
  }
}

function addBytes(sum: number, list: RowSequence<ReducedGroup>): number {
  return sum + bytesOf(list)
}

function bytesOf(groups: Iterable<ViewGroup>): number {
  let bytes = objectBytes
  for (const { group, value } of groups) bytes += group.length + value.length + objectBytes
  return bytes
}
