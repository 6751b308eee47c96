import { compareRanges } from '@sectional/core'
import type { HashRange } from '@sectional/core'
import { activeReplicas } from '../control/cluster-state.ts'
import type { DatabaseRecord } from '../control/cluster-state.ts'

/**
 * Returns the node that records the writes to one range, so that one write is one event. This is the first linked node
 * of the database's first shard if it also holds the range, and otherwise the first linked node of the range.
 *
 * @returns undefined when no node of the range is linked, or when the range is not a shard any more
 */
export function eventRecorder(
  { shards }: DatabaseRecord, range: HashRange, linked: ReadonlySet<string>,
): string | undefined {
  const shard = shards.find(each => compareRanges(each.range, range) === 0)
  if (shard === undefined) return undefined
  const nodes = activeReplicas(shard).map(({ node }) => node).filter(node => linked.has(node))
  return activeReplicas(shards[0]!).find(({ node }) => nodes.includes(node))?.node ?? nodes[0]
}
