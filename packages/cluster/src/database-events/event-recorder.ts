import { compareRanges } from '@sectional/core'
import type { HashRange } from '@sectional/core'
import { activeReplicas } from '../control/cluster-state.ts'
import type { DatabaseRecord } from '../control/cluster-state.ts'

/**
 * The node that records the writes to one range, so that one write is one event: the first linked node of the
 * database's first shard when it holds the range too, else the first linked one of the range.
 *
 * @returns undefined when no node of the range is linked, or the range is no shard any more
 */
export function eventRecorder({ shards }: DatabaseRecord, range: HashRange, linked: ReadonlySet<string>): string | undefined {
  const shard = shards.find(each => compareRanges(each.range, range) === 0)
  if (shard === undefined) return undefined
  const nodes = activeReplicas(shard).map(({ node }) => node).filter(node => linked.has(node))
  return activeReplicas(shards[0]!).find(({ node }) => nodes.includes(node))?.node ?? nodes[0]
}
