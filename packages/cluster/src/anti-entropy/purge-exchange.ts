/**
 * Purges are copied before documents, and in both directions (packages/cluster/DESIGN.md#purges). After a replica has
 * applied its peer's purges, it cannot send revisions that the peer has purged.
 *
 *     since = to.purgesSeen[from.history]
 *     from.scanPurges(since) -> to.purgeDocuments, with the checkpoint
 *
 * A purge that is recorded on the peer during the exchange is handled by the receiving replica, which ignores revisions
 * that their sender should no longer have (`StoreRevisionsRequest`).
 */
import type { CallContext, PurgeReplica, PurgeRow, ReplicaInfo } from '@sectional/core'

/**
 * A replica together with the history that takes part. Calls fail once the replica has another history
 * (`CallContext.history`).
 */
export interface ExchangingReplica { readonly replica: PurgeReplica; readonly info: ReplicaInfo }

/** Returns the context of a call that is valid only for the history that `info` has. */
export function boundCall(call: CallContext, { history }: ReplicaInfo): CallContext {
  return { ...call, history }
}

/** Purges in one call. */
const purgesTogether = 100

/** @returns the number of purges that were copied */
export async function exchangePurges(
  one: ExchangingReplica, other: ExchangingReplica, call: CallContext,
): Promise<number> {
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
  // Purges that are no longer listed were applied on all replicas, so the checkpoint may cover them.
  await to.replica.purgeDocuments({ purges: [], checkpoint: { history, sequence: purgeSequence } }, write)
  return count
}
