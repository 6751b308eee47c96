import type { RevisionsDiff } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import { readCall } from './coordinator-scope.ts'
import type { CoordinatorScope } from './coordinator-scope.ts'
import type { RequestContext } from './coordinator.ts'
import type { ShardPlace } from './replica-access.ts'
import { collectReplies } from './reply-collection.ts'

export interface DiffRequest { readonly id: string; readonly revisions: readonly string[] }

/**
 * Which revisions the database lacks. A revision counts as there when each of a majority of the replicas has it:
 * whoever sends it again does no harm, and whoever does not may rely on it.
 */
export async function diffRevisions(
  scope: CoordinatorScope, db: DatabaseRecord, requests: readonly DiffRequest[], context: RequestContext,
): Promise<readonly RevisionsDiff[]> {
  const groups = new Map<ShardPlace, number[]>()
  requests.forEach(({ id }, index) => {
    const place = scope.access.placeOf(db, id)
    const group = groups.get(place)
    if (group === undefined) groups.set(place, [index])
    else group.push(index)
  })
  const results = new Array<RevisionsDiff>(requests.length)
  const call = readCall(scope, context)
  await Promise.all([...groups].flatMap(([place, indexes]) => cut(indexes, scope.options.batchDocumentsMax).map(async part => {
    const asked = part.map(index => requests[index]!)
    const { replies } = await collectReplies(scope, place, undefined, peer => peer.replica.diffRevisions(asked, call))
    part.forEach((index, i) => { results[index] = joinDiffs(replies.map(reply => reply.value[i]!), asked[i]!) })
  })))
  return results
}

function cut(indexes: readonly number[], size: number): number[][] {
  return Array.from({ length: Math.ceil(indexes.length / size) }, (_, i) => indexes.slice(i * size, (i + 1) * size))
}

function joinDiffs(diffs: readonly RevisionsDiff[], { id, revisions }: DiffRequest): RevisionsDiff {
  if (diffs.length === 1) return diffs[0]!
  const missing = new Set(diffs.flatMap(diff => diff.missing))
  const possibleAncestors = [...new Set(diffs.flatMap(diff => diff.possibleAncestors))]
  return { id, missing: revisions.filter(revision => missing.has(revision)), possibleAncestors }
}
