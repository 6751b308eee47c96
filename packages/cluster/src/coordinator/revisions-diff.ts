import { mapBounded } from '@sectional/core'
import type { RevisionsDiff } from '@sectional/core'
import { majority } from '../quorum/majority.ts'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import { readCall } from '../shard-calls/coordinator-scope.ts'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import type { OperationContext } from '../contracts/coordinator.ts'
import type { ShardPlace } from '../replicas/replica-access.ts'
import { collectReplies } from '../shard-calls/reply-collection.ts'

/** Largest number of concurrent calls of one request to each of the asked replicas. */
const partsMax = 16

export interface DiffRequest { readonly id: string; readonly revisions: readonly string[] }

/**
 * Returns the revisions that the database lacks. A revision counts as present when a majority of the replicas has it:
 * to store it again is harmless, and a client that does not store it can rely on the majority. When the first replicas
 * differ, one of them lags, and all replicas are asked.
 */
export async function diffRevisions(
  scope: CoordinatorScope, db: DatabaseRecord, requests: readonly DiffRequest[], context: OperationContext,
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
  const parts = [...groups].flatMap(([place, indexes]) =>
    cut(indexes, scope.options.batchDocumentsMax).map(part => ({ place, part })))
  await mapBounded(parts, partsMax, async ({ place, part }) => {
    if (parts.length > 1) await scope.runtime.turns.pause()
    const asked = part.map(index => requests[index]!)
    const ask = (r: number | undefined) =>
      collectReplies(scope, place, r, peer => peer.replica.diffRevisions(asked, call))
    let { replies } = await ask(undefined)
    const differ = asked.some((_, i) =>
      replies.some(reply => reply.value[i]!.missing.length !== replies[0]!.value[i]!.missing.length))
    if (differ && replies.length < place.activeCount) replies = (await ask(place.activeCount)).replies
    part.forEach((index, i) => {
      results[index] = joinDiffs(replies.map(reply => reply.value[i]!), asked[i]!, majority(place.activeCount))
    })
  })
  return results
}

function cut(indexes: readonly number[], size: number): number[][] {
  return Array.from({ length: Math.ceil(indexes.length / size) }, (_, i) => indexes.slice(i * size, (i + 1) * size))
}

function joinDiffs(diffs: readonly RevisionsDiff[], { id, revisions }: DiffRequest, holdersMin: number): RevisionsDiff {
  if (diffs.length === 1) return diffs[0]!
  // With fewer answers than a majority, a revision that one of the replicas lacks counts as missing.
  const needed = Math.min(holdersMin, diffs.length)
  const lacking = diffs.map(diff => new Set(diff.missing))
  const possibleAncestors = [...new Set(diffs.flatMap(diff => diff.possibleAncestors))]
  return {
    id, missing: revisions.filter(revision => lacking.filter(missing => !missing.has(revision)).length < needed),
    possibleAncestors,
  }
}
