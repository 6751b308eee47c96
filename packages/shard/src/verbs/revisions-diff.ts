import type { RevisionsDiff } from '@sectional/core'
import type { ShardRecords } from '../shard-records.ts'

/** One entry for each request, in order. */
export async function diffRevisions(records: ShardRecords, requests: readonly { readonly id: string; readonly revisions: readonly string[] }[]): Promise<RevisionsDiff[]> {
  const found = await records.documents(requests.map(request => request.id))
  return requests.map(({ id, revisions }, index) => {
    const tree = found[index]?.tree
    if (tree === undefined) return { id, missing: revisions, possibleAncestors: [] }
    const missing = tree.missing(revisions)
    return { id, missing, possibleAncestors: missing.length === 0 ? [] : tree.possibleAncestors(missing) }
  })
}
