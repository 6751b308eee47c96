import { createHash } from 'node:crypto'
import { encodeSinceToken, indexId } from '@sectional/core'
import type { IndexDefinition, IndexHead } from '@sectional/core'
import type { ShardPlace } from '../replicas/replica-access.ts'
import type { ViewAnswer } from '../contracts/view-query.ts'

/** What one replica has reported of its index. */
export interface ShardHead {
  readonly place: Pick<ShardPlace, 'id'>
  readonly node: string
  readonly head: IndexHead
}

/**
 * Summarizes what the replicas that answer a query have reported.
 *
 * The fingerprint is computed from the versions of their indexes, which are digests of rows. So it does not depend on
 * which replicas answer.
 *
 * @param shards in the order of their ranges
 */
export function viewSummary(
  definition: IndexDefinition, shards: readonly ShardHead[], skip: number,
): Pick<ViewAnswer<unknown>, 'total' | 'offset' | 'updateSequence' | 'fingerprint'> {
  const hash = createHash('md5').update(`${indexId(definition)}\n`)
  let [total, before] = [0, 0]
  for (const { head: { version, rowCount, rowsBefore } } of shards) {
    hash.update(`${version}\n`)
    total += rowCount
    before += rowsBefore
  }
  const parts = shards.map(({ place: { id: { range } }, node, head: { position: { history, sequence } } }) =>
    ({ range, node, history, sequence }))
  return {
    total, offset: Math.min(total, before + skip), updateSequence: encodeSinceToken(parts),
    fingerprint: hash.digest('hex'),
  }
}
