import { ApiError, ReplicaError, mapBounded, openedBytesMax, openedRevisionBytes } from '@sectional/core'
import type { CallContext, OpenedRevision, OpenRevisionsRequest, ShardReplica } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import { majority } from '../quorum/majority.ts'
import { quorumSize } from '../quorum/read-quorum.ts'
import { readCall } from '../shard-calls/coordinator-scope.ts'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import type { OperationContext, ReadOptions, RevisionsRequest } from '../contracts/coordinator.ts'
import { documentReadsMax, fetchRevisions, readDocument } from '../documents/document-read.ts'
import type { DocumentRead } from '../documents/document-read.ts'
import type { ShardPlace } from '../replicas/replica-access.ts'
import { asReplicaError, shardFailure } from '../replicas/replica-failures.ts'
import { askOne, collectReplies } from '../shard-calls/reply-collection.ts'
import { branchRevisions } from '../documents/revision-merge.ts'

/**
 * Opens revisions with their bodies: named ones in the given order, or every leaf of the merged tree, winner first. A
 * named revision that r replicas lack is read from the other replicas: a feed may have shown it before r replicas had
 * it, and a replicator asks only once.
 */
export async function openRevisions(
  scope: CoordinatorScope, db: DatabaseRecord, id: string, request: RevisionsRequest, context: OperationContext,
): Promise<readonly OpenedRevision[] | null> {
  const { access, options: { reviewTimeoutMs }, readHealth } = scope
  const place = access.placeOf(db, id)
  const call = readCall(scope, context)
  const local = access.loneLocal(place)
  if (local !== undefined) return openAlone(local, id, request, call)
  const opened = await openFrom(scope, db, place, id, request, call)
  if (opened === null || request.revisions === 'leaves' || opened.every(({ kind }) => kind === 'found')) return opened
  const everyone = access.readers(place).filter(peer => !readHealth.isSuspect(peer.node)).length
  if (everyone <= quorumSize(place.activeCount, request.r)) return opened
  try {
    return await openFrom(scope, db, place, id, { ...request, r: everyone }, {
      ...call, timeoutMs: Math.min(call.timeoutMs, reviewTimeoutMs),
    })
  } catch (error) {
    if (error instanceof ApiError) return opened
    throw error
  }
}

async function openFrom(
  scope: CoordinatorScope, db: DatabaseRecord, place: ShardPlace, id: string,
  request: RevisionsRequest, call: CallContext,
): Promise<readonly OpenedRevision[] | null> {
  const { revisions, latest, r } = request
  if (revisions !== 'leaves' && !latest) {
    const { opened, answered, errors } = await fetchRevisions(
      scope, scope.access.readers(place), id, revisions, quorumSize(place.activeCount, r), call,
    )
    if (answered === 0 && revisions.length > 0) throw shardFailure(errors.map(asReplicaError))
    const isUncertain = request.majority === true && answered < majority(place.activeCount)
    if (isUncertain && opened.some(({ kind }) => kind === 'missing')) throw uncertain()
    return opened
  }
  for (let reads = 1; ; reads++) {
    const read = await readDocument(scope, db, place, id, { r, body: false, tree: latest }, call)
    if (read === null) return revisions === 'leaves' ? null : revisions.map(revision => ({ kind: 'missing', revision }))
    const leaves = read.leaves.map(leaf => leaf.revision)
    const wanted = revisions === 'leaves' ? leaves : latestOf(read, revisions)
    const { opened } = await fetchRevisions(scope, read.peers, id, wanted, read.peers.length, call)
    const replaced = opened.some((each, index) => each.kind === 'missing' && leaves.includes(wanted[index]!))
    if (!replaced || reads === documentReadsMax) return opened
  }
}

function uncertain(): ApiError {
  return new ApiError(
    'service_unavailable', 'Too few replicas answered to tell whether the revision exists. Try again.',
    { headers: { 'Retry-After': '1' } },
  )
}

/**
 * Opens revisions of many documents with one call to each asked replica. Documents about which the replicas differ, or
 * which they lack, are opened one by one as `openRevisions` does.
 *
 * @returns undefined for documents that the caller must request again, because the answer already has many bytes. The
 *   first document is never undefined
 * @throws ApiError when no replica of a range answers
 */
export async function openManyRevisions(
  scope: CoordinatorScope, db: DatabaseRecord, requests: readonly OpenRevisionsRequest[], { r }: ReadOptions,
  context: OperationContext,
): Promise<readonly (readonly OpenedRevision[] | null | undefined)[]> {
  const call = readCall(scope, context)
  const results = new Array<readonly OpenedRevision[] | null | undefined>(requests.length).fill(undefined)
  await Promise.all([...indexesByPlace(scope, db, requests)].map(async ([place, indexes]) => {
    const asked = indexes.map(index => requests[index]!)
    const together = await openTogether(scope, place, asked, r, call)
    const answered = together === undefined ? indexes : indexes.slice(0, Math.max(1, together.length))
    const alone: number[] = []
    for (const [position, index] of answered.entries()) {
      const opened = together?.[position]
      if (opened === undefined) alone.push(index)
      else results[index] = requests[index]!.revisions === 'leaves' && opened.length === 0 ? null : opened
    }
    let bytes = 0
    await mapBounded(alone, scope.options.requestCallsMax, async index => {
      if (bytes > openedBytesMax) return
      const request = requests[index]!
      const opened = results[index] = await openRevisions(scope, db, request.id, { ...request, r }, context)
      for (const each of opened ?? []) {
        if (each.kind === 'found') bytes += each.revision.body.length + openedRevisionBytes
      }
    })
  }))
  return results
}

function indexesByPlace(
  scope: CoordinatorScope, db: DatabaseRecord, requests: readonly OpenRevisionsRequest[],
): Map<ShardPlace, number[]> {
  const byPlace = new Map<ShardPlace, number[]>()
  for (const [index, { id }] of requests.entries()) {
    const place = scope.access.placeOf(db, id)
    const indexes = byPlace.get(place)
    if (indexes === undefined) byPlace.set(place, [index])
    else indexes.push(index)
  }
  return byPlace
}

/**
 * Opens the first requests that all replicas answer together, in order. An undefined element must be opened alone. The
 * whole result is undefined when a call failed; all documents must then be opened alone.
 */
async function openTogether(
  scope: CoordinatorScope, place: ShardPlace, requests: readonly OpenRevisionsRequest[], r: number | undefined,
  call: CallContext,
): Promise<readonly (readonly OpenedRevision[] | undefined)[] | undefined> {
  try {
    const local = scope.access.loneLocal(place)
    if (local !== undefined) return await local.openRevisions(requests, call)
    if (requests.length === 1) return undefined
    if (requests.every(({ revisions, latest }) => revisions !== 'leaves' && !latest)) {
      const opened = await askOne(scope, place, peer => peer.replica.openRevisions(requests, call))
      return opened.map(revisions => revisions.every(({ kind }) => kind === 'found') ? revisions : undefined)
    }
    const { replies: [first, ...others], met } = await collectReplies(
      scope, place, r, peer => peer.replica.openRevisions(requests, call),
    )
    const answered = Math.min(first!.value.length, ...others.map(({ value }) => value.length))
    return requests.slice(0, answered).map((_, index) => {
      const opened = first!.value[index]!
      if (opened.some(({ kind }) => kind === 'missing')
        || others.some(({ value }) => !sameRevisions(value[index]!, opened))) {
        return undefined
      }
      scope.metrics.read(met ? 'agreed' : 'degraded')
      return opened
    })
  } catch (error) {
    if (requests.length > 1 && (error instanceof ApiError || error instanceof ReplicaError)) return undefined
    throw error instanceof ApiError ? error : shardFailure([asReplicaError(error)])
  }
}

function sameRevisions(a: readonly OpenedRevision[], b: readonly OpenedRevision[]): boolean {
  return a.length === b.length && a.every((each, index) => nameOf(each) === nameOf(b[index]!))
}

function nameOf(opened: OpenedRevision): string {
  if (opened.kind === 'missing') return `missing ${opened.revision}`
  const { path } = opened.revision
  return `${path.start}-${path.ids[0]}`
}

async function openAlone(
  local: ShardReplica, id: string, { revisions, latest }: RevisionsRequest, call: ReturnType<typeof readCall>,
): Promise<readonly OpenedRevision[] | null> {
  try {
    const [opened] = await local.openRevisions([{ id, revisions, latest }], call)
    return revisions === 'leaves' && opened!.length === 0 ? null : opened!
  } catch (error) {
    throw shardFailure([asReplicaError(error)])
  }
}

/** Replaces each named revision by the leaves that descend from it. Unknown revisions stay. */
function latestOf(read: DocumentRead, revisions: readonly string[]): string[] {
  const branches = read.tree!.map(branchRevisions)
  const replaced = revisions.flatMap(revision => {
    const leaves = branches.filter(branch => branch.includes(revision)).map(branch => branch[0]!)
    return leaves.length === 0 ? [revision] : leaves
  })
  return [...new Set(replaced)]
}
