import type { CallContext, OpenedRevision } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import { quorumSize } from '../quorum/read-quorum.ts'
import { localReadCall, readCall } from '../shard-calls/coordinator-scope.ts'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import type { OpenDocumentOptions, OpenedDocument, OperationContext } from '../contracts/coordinator.ts'
import { documentReadsMax, fetchRevisions, readDocument } from '../documents/document-read.ts'
import type { DocumentRead } from '../documents/document-read.ts'
import { asReplicaError, shardFailure } from '../replicas/replica-failures.ts'

/** Opens the winner of a document as r replicas know it. Replicas that differ are repaired in the background. */
export async function openDocument(
  scope: CoordinatorScope, db: DatabaseRecord, id: string, options: OpenDocumentOptions, context: OperationContext,
): Promise<OpenedDocument | null> {
  const place = scope.access.placeOf(db, id)
  const body = options.body !== false
  const tree = options.tree === true
  const local = scope.access.loneLocal(place)
  if (local !== undefined) {
    scope.metrics.read(quorumSize(1, options.r) > 1 ? 'degraded' : 'local')
    try {
      return await local.openDocument({ id, body, tree }, localReadCall(scope, context))
    } catch (error) {
      throw shardFailure([asReplicaError(error)])
    }
  }
  const call = readCall(scope, context)
  for (let reads = 1; ; reads++) {
    // From the second read on, replicas send bodies together with the leaves, so that no edit can come in between.
    const read = await readDocument(scope, db, place, id, { r: options.r, body, tree, whole: reads > 1 }, call)
    if (read === null) return null
    const content = body ? await winnersContent(scope, read, id, call) : {}
    if (body && content.body === undefined && reads < documentReadsMax) continue
    return { leaves: read.leaves, sequence: read.sequence, ...content, ...(tree && { tree: read.tree }) }
  }
}

async function winnersContent(
  scope: CoordinatorScope, read: DocumentRead, id: string, call: CallContext,
): Promise<Pick<OpenedDocument, 'body' | 'attachments'>> {
  if (read.body !== undefined) return { body: read.body, ...(read.attachments && { attachments: read.attachments }) }
  return contentOf(
    (await fetchRevisions(scope, read.peers, id, [read.leaves[0]!.revision], read.peers.length, call)).opened[0],
  )
}

function contentOf(opened: OpenedRevision | undefined): Pick<OpenedDocument, 'body' | 'attachments'> {
  if (opened?.kind !== 'found') return {}
  const { body, attachments } = opened.revision
  return { body, ...(attachments && { attachments }) }
}
