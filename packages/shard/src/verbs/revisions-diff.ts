import type { ReplicaDiff } from '@sectional/core'
import type { ShardRecords } from '../reading/shard-records.ts'

/** A list of up to this length is searched without a set. Most documents have only one leaf. */
const searchedMax = 8

function membership(revisions: readonly string[]): (revision: string) => boolean {
  if (revisions.length <= searchedMax) return revision => revisions.includes(revision)
  const known = new Set(revisions)
  return revision => known.has(revision)
}

/** Returns one entry for each request, in order. */
export async function diffRevisions(
  records: ShardRecords, requests: readonly { readonly id: string; readonly revisions: readonly string[] }[],
): Promise<ReplicaDiff[]> {
  const found = await records.documents(requests.map(request => request.id))
  return requests.map(({ id, revisions }, index) => {
    const record = found[index]
    if (record === undefined) return { id, missing: revisions, possibleAncestors: [], sequence: 0, otherLeaves: false }
    const { sequence, leaves } = record
    const isAsked = membership(revisions)
    const otherLeaves = leaves.some(({ revision }) => !isAsked(revision))
    // Replicas usually name leaves that exist here. The tree is then not decoded.
    const isLeaf = membership(leaves.map(({ revision }) => revision))
    const missing = revisions.every(isLeaf) ? [] : record.tree.missing(revisions)
    return {
      id, missing, possibleAncestors: missing.length === 0 ? [] : record.tree.possibleAncestors(missing), sequence,
      otherLeaves,
    }
  })
}
