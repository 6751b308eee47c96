import { deriveVerbs, type FindRequest, indexVerbs, ReplicaError } from '@sectional/core'
import { type FindParts, findInReplica } from './find/document-find.ts'

/**
 * The indexes of a replica on a node that has no store of indexes: there is none to read, and none to drop. Documents
 * are found without an index.
 */
export const NoIndexes = deriveVerbs<typeof indexVerbs, FindParts>(indexVerbs, {
  call: verb => async () => {
    if (verb.name !== 'dropIndexes') throw none()
  },
  pages: verb => async function* (parts, request, context) {
    if (verb.name !== 'find' || (request as FindRequest).source.kind !== 'documents') throw none()
    yield* findInReplica(parts, request as FindRequest, context)
  },
})

function none(): ReplicaError {
  return new ReplicaError('not_hosted', 'this node has no indexes')
}
