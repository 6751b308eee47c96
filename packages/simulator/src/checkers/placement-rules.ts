import { formatRange } from '@sectional/core'
import { activeReplicas } from '@sectional/server'
import type { ClusterState, ShardRecord } from '@sectional/server'
import type { Findings } from './final-state.ts'

/**
 * Judges one step of the metadata: each shard keeps a replica that counts, and a replica that is new to a shard does
 * not count while another one can fill it.
 */
export function placementFindings(before: ClusterState | undefined, after: ClusterState | undefined): Findings {
  if (after === undefined) return []
  return [...after.databases.values()].flatMap(({ incarnation, name, shards }) => {
    const known = [...before?.databases.values() ?? []].find(other => other.incarnation === incarnation)
    if (known?.shards === shards) return []
    return shards.flatMap((shard, index) => {
      const findings = activeReplicas(shard).length > 0 ? [] : ['no replica counts']
      if (known !== undefined) findings.push(...unfilled(known.shards[index]!, shard))
      return findings.map(finding => `${name} ${formatRange(shard.range)}: ${finding}`)
    })
  })
}

function unfilled(before: ShardRecord, after: ShardRecord): string[] {
  const counted = activeReplicas(before).map(({ node }) => node)
  const [source] = activeReplicas(after).filter(({ node }) => counted.includes(node))
  if (source === undefined) return []
  return activeReplicas(after).filter(({ node }) => !before.replicas.some(replica => replica.node === node))
    .map(({ node }) => `the new replica on ${node} counts at once, although ${source.node} could fill it`)
}
