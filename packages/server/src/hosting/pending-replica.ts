import { deriveVerbs, shardVerbs, type ShardReplica } from '@sectional/core'

/** Returns the replica; called for each call. When it rejects, the call rejects with the same error. */
type Open = () => Promise<ShardReplica>

/**
 * A local replica that does not exist yet: each call first waits for `open`. Therefore a database can be used as soon
 * as it is created, although the nodes create its shards on their disks a moment later.
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
