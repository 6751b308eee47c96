import { ApiError, compareRevisions, designPrefix, mapBounded } from '@sectional/core'
import type { CallContext } from '@sectional/core'
import type { OpenDocumentOptions, OpenedDocument, OperationContext } from '../contracts/coordinator.ts'
import { DesignDocument, DesignDocuments } from '../contracts/design-document.ts'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { Peer } from '../replicas/replica-access.ts'
import { readCall } from '../shard-calls/coordinator-scope.ts'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import { collectReplies } from '../shard-calls/reply-collection.ts'

export interface DesignDocumentsRead {
  readonly documents: DesignDocuments
  /** True when a majority of the replicas of each shard answered, so that each acknowledged write is included. */
  readonly confirmed: boolean
}

/** Opens one document as r replicas know it (the coordinator's `openDocument`). */
export type OpenDesignDocument = (
  db: DatabaseRecord, id: string, options: OpenDocumentOptions, context: OperationContext,
) => Promise<OpenedDocument | null>

/**
 * Reads the design documents of a database. A majority of the replicas of each shard lists ids and revisions; only the
 * documents that differ from `known`, or between replicas, are opened.
 *
 * When fewer replicas answer, `known` is not replaced by older revisions: they may be what a replica that lags has.
 *
 * @throws ApiError when no replica of a shard answers, and `service_unavailable` when the documents have more than
 * `bytesMax` bytes
 */
export async function readDesignDocuments(
  scope: CoordinatorScope, open: OpenDesignDocument, db: DatabaseRecord, known: DesignDocuments, bytesMax: number,
  context: OperationContext,
): Promise<DesignDocumentsRead> {
  const call = readCall(scope, context)
  const shards = await mapBounded(scope.access.places(db), scope.options.requestCallsMax, async place => {
    const { replies, met } = await collectReplies(scope, place, undefined, peer => listRevisions(peer, call))
    return { lists: replies.map(({ value }) => value), met, place }
  })
  const documents = new DesignDocuments()
  const changed: { readonly id: string; readonly met: boolean }[] = []
  for (const { lists, met, place } of shards) {
    const ids = new Set(lists.flatMap(list => [...list.keys()]))
    if (!met) for (const id of known.keys()) if (scope.access.placeOf(db, id) === place) ids.add(id)
    for (const id of ids) {
      const before = known.get(id)
      if (before !== undefined && lists.every(list => list.get(id) === before.revision)) documents.set(id, before)
      else changed.push({ id, met })
    }
  }
  let bytes = bytesOf(documents)
  await mapBounded(changed, openedTogether, async ({ id, met }) => {
    const opened = await open(db, id, {}, context)
    const document = newer(known.get(id), id, opened, met)
    if (document === undefined) return
    bytes += document.body.length
    if (bytes > bytesMax) throw tooLarge(db.name, bytesMax)
    documents.set(id, document)
  })
  const isKnown = changed.length === 0 && documents.size === known.size
  // The same map for the same documents, so that callers can keep what they derive from it.
  return { documents: isKnown ? known : documents, confirmed: shards.every(({ met }) => met) }
}

/** Design documents that one reading opens concurrently. */
const openedTogether = 8

/** Returns the bytes of the bodies. */
export function bytesOf(documents: DesignDocuments): number {
  let bytes = 0
  for (const { body } of documents.values()) bytes += body.length
  return bytes
}

async function listRevisions({ replica }: Peer, call: CallContext): Promise<ReadonlyMap<string, string>> {
  const revisions = new Map<string, string>()
  const range = {
    start: { id: designPrefix, inclusive: true }, end: { id: '_design0', inclusive: false }, descending: false,
    body: false, leaves: false,
  }
  for await (const page of replica.scanDocuments(range, call)) {
    for (const { id, revision } of page) revisions.set(id, revision)
  }
  return revisions
}

function newer(
  before: DesignDocument | undefined, id: string, opened: OpenedDocument | null, met: boolean,
): DesignDocument | undefined {
  const winner = opened?.leaves[0]
  const isOlder = before !== undefined
    && (winner === undefined || compareRevisions(winner.revision, before.revision) < 0)
  if (!met && isOlder) return before
  if (opened === null || winner === undefined || winner.deleted) return undefined
  if (opened.body === undefined) throw new ApiError('internal_server_error', `The content of ${id} is lost.`)
  return new DesignDocument(id, winner.revision, opened.body, opened.attachments)
}

function tooLarge(database: string, bytesMax: number): ApiError {
  const reason = `The design documents of ${database} have more than ${bytesMax} bytes, the part of `
    + 'ddoc_cache/max_size that they may have. Raise the option, or delete design documents.'
  return new ApiError('service_unavailable', reason, { headers: { 'Retry-After': '5' } })
}
