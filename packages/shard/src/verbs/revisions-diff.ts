import type { ReplicaDiff } from '@sectional/core'
import type { ShardRecords } from '../shard-records.ts'

/** One entry for each request, in order. */
export async function diffRevisions(records: ShardRecords, requests: readonly { readonly id: string; readonly revisions: readonly string[] }[]): Promise<ReplicaDiff[]> {
  const found = await records.documents(requests.map(request => request.id))
  return requests.map(({ id, revisions }, index) => {
    const record = found[index]
    if (record === undefined) return { id, missing: revisions, possibleAncestors: [], sequence: 0, otherLeaves: false }
    const { sequence, leaves } = record
    const otherLeaves = leaves.some(({ revision }) => !revisions.includes(revision))
    // As a rule replicas ask for the leaves that are here: the tree need not be decoded.
    const missing = revisions.every(revision => leaves.some(leaf => leaf.revision === revision)) ? [] : record.tree.missing(revisions)
    return { id, missing, possibleAncestors: missing.length === 0 ? [] : record.tree.possibleAncestors(missing), sequence, otherLeaves }
  })
}
