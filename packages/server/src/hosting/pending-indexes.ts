import { deriveVerbs, indexVerbs, type IndexReplica } from '@sectional/core'

/** Returns the indexes; called for each call. When it rejects, the call rejects with the same error. */
type Open = () => Promise<IndexReplica>

/** The indexes of a local replica. Each call first waits until the replica exists and its indexes are open. */
export const PendingIndexes = deriveVerbs<typeof indexVerbs, Open>(indexVerbs, {
  call: verb => async (open, request, context) => verb.invoke(await open(), request, context),
  pages: verb => async function* (open, request, context) {
    yield* verb.invoke(await open(), request, context)
  },
})
