import { groupOrder } from '@sectional/core'
import type { GroupPlace, PageLimits, ReducedGroup, RowSequence } from '@sectional/core'
import { mergeLists, mergeRows } from '../shard-calls/row-merge.ts'
import type { ViewGroup } from '../contracts/view-query.ts'

export interface GroupMergeOptions extends PageLimits {
  readonly descending: boolean
  /** Number of groups to leave out at the beginning. */
  readonly skip: number
  /** Largest number of groups to return; null: all. */
  readonly limit: number | null
  /** Makes the final values of groups (`ReduceAgain`). */
  readonly reduceAgain: (groups: readonly (readonly Uint8Array[])[]) => Promise<readonly Uint8Array[]>
}

/** The groups of each shard; lists when all of them are in memory. */
export type GroupSources = readonly AsyncIterable<readonly ReducedGroup[]>[] | readonly RowSequence<ReducedGroup>[]

interface ShardGroup extends ReducedGroup { readonly shard: number }

interface GatheredGroup extends GroupPlace { readonly values: Uint8Array[] }

/**
 * Merges the groups of all shards. The values of equal groups are reduced again, in the order of the shards, so that
 * sums of fractions are the same in each query. Groups that are left out are not reduced.
 *
 * @param sources the groups of each shard, in the order of `groupOrder`; lists when all of them are in memory
 */
export async function* mergeGroups(
  sources: GroupSources,
  { descending, skip, limit, pageRows, pageBytes, reduceAgain }: GroupMergeOptions,
): AsyncGenerator<readonly ViewGroup[]> {
  const order = groupOrder(descending)
  const all = { compare: (a: ShardGroup, b: ShardGroup) => order(a, b) || a.shard - b.shard, skip: 0, limit: null }
  const merged = areLists(sources)
    ? [mergeLists(sources.map(inShard), all)]
    : mergeRows(sources.map(numbered), { ...all, bytesOf, pageRows, pageBytes })
  let toSkip = skip
  let left = limit ?? Infinity
  const reduced = async (gathered: readonly GatheredGroup[]): Promise<readonly ViewGroup[]> => {
    const wanted = gathered.slice(toSkip, toSkip + left)
    toSkip -= Math.min(toSkip, gathered.length)
    left -= wanted.length
    if (wanted.length === 0) return []
    const values = await reduceAgain(wanted.map(group => group.values))
    return wanted.map(({ range, group }, index) => ({ range, group, value: values[index]! }))
  }
  let last: GatheredGroup | undefined
  for await (const page of merged) {
    const complete: GatheredGroup[] = []
    for (const row of page) {
      if (last !== undefined && order(last, row) === 0) last.values.push(row.value)
      else {
        if (last !== undefined) complete.push(last)
        last = { range: row.range, group: row.group, values: [row.value] }
      }
    }
    const groups = await reduced(complete)
    if (groups.length > 0) yield groups
    if (left === 0) return
  }
  const groups = last === undefined ? [] : await reduced([last])
  if (groups.length > 0) yield groups
}

function areLists(sources: GroupSources): sources is readonly RowSequence<ReducedGroup>[] {
  return sources[0] !== undefined && Symbol.iterator in sources[0]
}

async function* numbered(
  source: AsyncIterable<readonly ReducedGroup[]>, shard: number,
): AsyncGenerator<readonly ShardGroup[]> {
  for await (const page of source) yield inShard(page, shard)
}

function inShard(groups: Iterable<ReducedGroup>, shard: number): readonly ShardGroup[] {
  return Array.from(groups, ({ kind, range, group, value }) => ({ kind, range, group, value, shard }))
}

function bytesOf({ group, value }: ReducedGroup): number {
  return group.length + value.length
}
