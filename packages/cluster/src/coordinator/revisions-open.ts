import type { OpenedRevision, ShardReplica } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import { quorumSize } from '../quorum/read-quorum.ts'
import { readCall } from './coordinator-scope.ts'
import type { CoordinatorScope } from './coordinator-scope.ts'
import type { ReadOptions, RequestContext } from './coordinator.ts'
import { fetchRevisions, readDocument } from './document-read.ts'
import type { DocumentRead } from './document-read.ts'
import { asReplicaError, shardFailure } from './replica-failures.ts'
import { branchRevisions } from './revision-merge.ts'

export type RevisionsRequest = { readonly revisions: readonly string[] | 'leaves'; readonly latest: boolean } & ReadOptions

/** Revisions with their bodies: named ones in their order, or every leaf of the merged tree, winner first. */
export async function openRevisions(
  scope: CoordinatorScope, db: DatabaseRecord, id: string, request: RevisionsRequest, context: RequestContext,
): Promise<readonly OpenedRevision[] | null> {
  const place = scope.access.placeOf(db, id)
  const call = readCall(scope, context)
  const { revisions, latest, r } = request
  const local = scope.access.loneLocal(place)
  if (local !== undefined) return openAlone(local, id, request, call)
  if (revisions !== 'leaves' && !latest) {
    const { opened, answered, errors } = await fetchRevisions(scope, scope.access.readers(place), id, revisions, quorumSize(place.activeCount, r), call)
    if (answered === 0 && revisions.length > 0) throw shardFailure(errors.map(asReplicaError))
    return opened
  }
  const read = await readDocument(scope, db, place, id, { r, body: false, tree: latest }, call)
  if (read === null) return revisions === 'leaves' ? null : revisions.map(revision => ({ kind: 'missing', revision }))
  const wanted = revisions === 'leaves' ? read.leaves.map(leaf => leaf.revision) : latestOf(read, revisions)
  return (await fetchRevisions(scope, read.peers, id, wanted, read.peers.length, call)).opened
}

async function openAlone(local: ShardReplica, id: string, { revisions, latest }: RevisionsRequest, call: ReturnType<typeof readCall>): Promise<readonly OpenedRevision[] | null> {
  try {
    const [opened] = await local.openRevisions([{ id, revisions, latest }], call)
    return revisions === 'leaves' && opened!.length === 0 ? null : opened!
  } catch (error) {
    throw shardFailure([asReplicaError(error)])
  }
}

/** Each named revision replaced by the leaves that descend from it; unknown ones stay. */
function latestOf(read: DocumentRead, revisions: readonly string[]): string[] {
  const branches = read.tree!.map(branchRevisions)
  const replaced = revisions.flatMap(revision => {
    const leaves = branches.filter(branch => branch.includes(revision)).map(branch => branch[0]!)
    return leaves.length === 0 ? [revision] : leaves
  })
  return [...new Set(replaced)]
}
