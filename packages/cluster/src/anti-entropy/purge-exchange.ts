/**
 * Purges travel before documents, and both ways (packages/cluster/DESIGN.md#purges): a replica that has applied its
 * peer's purges has nothing left to send that the peer has purged.
 *
 *     since = to.purgesSeen[from.history]
 *     from.scanPurges(since) -> to.purgeDocuments, with the checkpoint
 *
 * A purge that was recorded on the peer in the meantime is caught at the other end, which leaves out revisions that
 * their sender should not have any more (`StoreRevisionsRequest`).
 */
import type { CallContext, PurgeReplica, PurgeRow, ReplicaInfo } from '@sectional/core'

/** A replica, and the life of it that takes part: it is refused to another one (`CallContext.history`). */
export interface ExchangingReplica { readonly replica: PurgeReplica; readonly info: ReplicaInfo }

/** The calls of a pass on one of its ends are for the life whose `info` the pass has read. */
export function boundCall(call: CallContext, { history }: ReplicaInfo): CallContext {
  return { ...call, history }
}

/** Purges of one call. */
const purgesTogether = 100

/** @returns how many purges were handed on */
export async function exchangePurges(one: ExchangingReplica, other: ExchangingReplica, call: CallContext): Promise<number> {
  return await handOn(one, other, call) + await handOn(other, one, call)
}

async function handOn(from: ExchangingReplica, to: ExchangingReplica, call: CallContext): Promise<number> {
  const { history, purgeSequence } = from.info
  const since = to.info.purgesSeen[history] ?? 0
  if (since >= purgeSequence) return 0
  const [read, write] = [boundCall(call, from.info), boundCall(call, to.info)]
  let count = 0
  for await (const page of from.replica.scanPurges(since, read)) {
    for (let at = 0; at < page.length; at += purgesTogether) {
      const rows = page.slice(at, at + purgesTogether)
      const purges = rows.map(({ uuid, id, paths }: PurgeRow) => ({ uuid, id, paths }))
      await to.replica.purgeDocuments({ purges, checkpoint: { history, sequence: rows.at(-1)!.sequence } }, write)
      count += rows.length
    }
  }
  // What is not listed any more was applied everywhere.
  await to.replica.purgeDocuments({ purges: [], checkpoint: { history, sequence: purgeSequence } }, write)
  return count
}
