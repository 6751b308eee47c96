import { deriveVerbs, shardVerbs, type ShardReplica } from '@sectional/core'

/**
 * Opens the replica; called anew for each call. Rejects when there is none, and then the call rejects with the same
 * error.
 */
type Open = () => Promise<ShardReplica>

/**
 * A local replica that is not open yet: each call first waits for `open`. So a database can be used as soon as
 * it is created, although its shards reach the disks of its nodes a moment later.
 */
export const PendingReplica = deriveVerbs<typeof shardVerbs, Open>(shardVerbs, {
  call: verb => async (open, request, context) => verb.invoke(await open(), request, context),
  upload: verb => async (open, chunks, context) => verb.invoke(await open(), chunks, context),
  pages: verb => async function* (open, request, context) {
    yield* verb.invoke(await open(), request, context)
  },
  download: verb => async function* (open, request, context) {
    yield* verb.invoke(await open(), request, context)
  },
})
