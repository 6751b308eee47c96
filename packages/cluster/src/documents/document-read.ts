import type { AttachmentRecord, Branch, CallContext, DocumentSnapshot, Leaf, OpenedRevision } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import type { Peer, ShardPlace } from '../replicas/replica-access.ts'
import { asReplicaError } from '../replicas/replica-failures.ts'
import { collectReplies } from '../shard-calls/reply-collection.ts'
import type { Reply } from '../shard-calls/reply-collection.ts'
import { bareBranch, mergeBranches, sameLeaves } from './revision-merge.ts'

/** How often a document is read in all. A leaf without a body was replaced during the read, or its body is lost. */
export const documentReadsMax = 3

/** A document as r replicas know it together. */
export interface DocumentRead {
  readonly leaves: readonly Leaf[]
  readonly sequence: number
  /** Present when it was requested, and when replicas differed. */
  readonly tree?: readonly Branch[]
  /** The winner's body, if the preferred reader sent it. */
  readonly body?: Uint8Array
  readonly attachments?: readonly AttachmentRecord[]
  /** The replicas that answered. Bodies can be opened from them. */
  readonly peers: readonly Peer[]
}

/**
 * Reads a document from r replicas. When they differ, merges their trees and requests a repair of the document.
 *
 * @param request with `whole`, every replica sends its winner's body and its tree; otherwise only the preferred reader
 *   does
 * @returns null when no replica that answered knows the document
 * @throws ApiError when no replica answers
 */
export async function readDocument(
  scope: CoordinatorScope, db: DatabaseRecord, place: ShardPlace, id: string,
  request: { readonly r?: number; readonly body: boolean; readonly tree: boolean; readonly whole?: boolean },
  call: CallContext,
): Promise<DocumentRead | null> {
  const { whole = false } = request
  const { replies, met } = await collectReplies(scope, place, request.r, (peer, first) =>
    peer.replica.openDocument(
      { id, body: whole || (request.body && first), tree: whole || (request.tree && first) }, call,
    ))
  const agreed = replies.every(reply => equalAnswers(reply.value, replies[0]!.value))
  scope.metrics.read(!met ? 'degraded' : agreed ? 'agreed' : 'merged')
  const peers = replies.map(reply => reply.peer)
  if (!agreed) {
    scope.repairs.request(db, place, id)
    return { ...await mergeReplies(replies, id, call), peers }
  }
  const fullest = replies.find(reply =>
    reply.value?.body !== undefined || reply.value?.tree !== undefined) ?? replies[0]!
  if (fullest.value === null) return null
  if (!request.tree || fullest.value.tree !== undefined) return { ...fullest.value, peers }
  return { ...await mergeReplies(replies, id, call), peers }
}

function equalAnswers(a: DocumentSnapshot | null, b: DocumentSnapshot | null): boolean {
  return a === null || b === null ? a === b : sameLeaves(a.leaves, b.leaves)
}

async function mergeReplies(
  replies: readonly Reply<DocumentSnapshot | null>[], id: string, call: CallContext,
): Promise<Omit<DocumentRead, 'peers'>> {
  const trees = await Promise.all(replies.map(reply => withTree(reply, id, call)))
  const { leaves, branches } = mergeBranches(trees.flat())
  const known = replies.flatMap(reply => reply.value === null ? [] : [reply.value])
  const winner = leaves[0]!.revision
  const { body, attachments } = known.find(snapshot =>
    snapshot.body !== undefined && snapshot.leaves[0]!.revision === winner) ?? {}
  return {
    leaves, tree: branches, sequence: known[0]!.sequence, ...(body && { body }), ...(attachments && { attachments }),
  }
}

/** The branches of one replica; only its leaves when it does not answer the second request. */
async function withTree(
  { peer, value }: Reply<DocumentSnapshot | null>, id: string, call: CallContext,
): Promise<readonly Branch[]> {
  if (value === null) return []
  if (value.tree !== undefined) return value.tree
  try {
    const again = await peer.replica.openDocument({ id, body: false, tree: true }, call)
    if (again?.tree !== undefined) return again.tree
  } catch {
    // The replica's first answer still counts.
  }
  return value.leaves.map(bareBranch)
}

/**
 * Opens named revisions. It asks one replica after the other for the revisions that are still missing; a revision has
 * the same content on every replica.
 *
 * @param peersMax the number of replicas that may answer
 * @returns the revisions in the order of `revisions`, the number of replicas that answered, and the errors of those
 *   that failed
 */
export async function fetchRevisions(
  scope: CoordinatorScope, peers: readonly Peer[], id: string, revisions: readonly string[], peersMax: number,
  call: CallContext,
): Promise<{
  readonly opened: readonly OpenedRevision[]
  readonly answered: number
  readonly errors: readonly unknown[]
}> {
  const found = new Map<string, OpenedRevision>()
  const errors: unknown[] = []
  let answered = 0
  for (const peer of peers) {
    const wanted = revisions.filter(revision => !found.has(revision))
    if (answered >= peersMax || wanted.length === 0) break
    try {
      const [opened] = await peer.replica.openRevisions([{ id, revisions: wanted, latest: false }], call)
      answered++
      opened!.forEach((each, i) => { if (each.kind === 'found') found.set(wanted[i]!, each) })
    } catch (error) {
      errors.push(error)
      if (asReplicaError(error).code === 'timeout') scope.readHealth.silent(peer.node)
    }
  }
  return { opened: revisions.map(revision => found.get(revision) ?? { kind: 'missing', revision }), answered, errors }
}
