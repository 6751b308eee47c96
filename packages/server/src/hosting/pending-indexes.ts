import { deriveVerbs, indexVerbs, type IndexReplica } from '@sectional/core'

/**
 * Returns the indexes; called for each call. When it rejects, the call rejects with the same error.
 *
 * @param creates whether the call may create an index
 */
type Open = (creates: boolean) => Promise<IndexReplica>

/** The indexes of a local replica. Each call first waits until the replica exists and its indexes are open. */
export const PendingIndexes = deriveVerbs<typeof indexVerbs, Open>(indexVerbs, {
  call: verb => async (open, request, context) => verb.invoke(await open(verb.name === 'buildIndex'), request, context),
  pages: verb => async function* (open, request, context) {
    yield* verb.invoke(await open(false), request, context)
  },
})
