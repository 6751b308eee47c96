import { deriveVerbs, indexVerbs, ReplicaError } from '@sectional/core'

/** The indexes of a replica on a node that has no store of indexes: there is none to read, and none to drop. */
export const NoIndexes = deriveVerbs<typeof indexVerbs, undefined>(indexVerbs, {
  call: verb => async () => {
    if (verb.name !== 'dropIndexes') throw none()
  },
  pages: () => async function* () {
    throw none()
  },
})

function none(): ReplicaError {
  return new ReplicaError('not_hosted', 'this node has no indexes')
}
