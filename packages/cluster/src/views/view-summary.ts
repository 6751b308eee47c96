import { encodeSinceToken } from '@sectional/core'
import type { IndexHead } from '@sectional/core'
import type { ShardPlace } from '../replicas/replica-access.ts'
import type { ViewAnswer } from '../contracts/view-query.ts'
import type { IndexFingerprints } from './index-fingerprints.ts'

/** What one replica has reported of its index. */
export interface ShardHead {
  readonly place: Pick<ShardPlace, 'id'>
  readonly node: string
  readonly head: IndexHead
}

/**
 * Summarizes what the replicas that answer a query have reported.
 *
 * @param index its id (`indexId`)
 * @param shards in the order of their ranges
 */
export function viewSummary(
  index: string, shards: readonly ShardHead[], skip: number, fingerprints: IndexFingerprints,
): Pick<ViewAnswer<unknown>, 'total' | 'offset' | 'updateSequence' | 'fingerprint'> {
  const versions = shards.map(({ head }) => head.version)
  let [total, before] = [0, 0]
  for (const { head: { rowCount, rowsBefore } } of shards) {
    total += rowCount
    before += rowsBefore
  }
  const updateSequence = (): string => encodeSinceToken(shards.map(
    ({ place: { id: { range } }, node, head: { position: { history, sequence } } }) =>
      ({ range, node, history, sequence })))
  const fingerprint = fingerprints.of(index, versions)
  return { total, offset: Math.min(total, before + skip), updateSequence, fingerprint }
}
