/** Converts the `_attachments` that a client sent into the attachment records of the new revision. */
import {
  ApiError, formatRevision, parseRevision, type AttachmentRecord, type Branch, type ParsedDocument,
} from '@sectional/core'
import { runWhileWanted } from '../messages/body.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import {
  attachmentEntries, type AttachmentEntry, type FollowingEntry, type InlineEntry, type StubEntry,
} from './attachment-entries.ts'
import { checkAttachmentHeads } from '../settings/size-limits.ts'
import { takeAttachment } from './attachment-intake.ts'

export interface ResolutionOptions {
  /** False when the revision is written with its history: `revpos` of its attachments is then taken from the client. */
  readonly newEdits: boolean
  /** The revision that is replaced; with `newEdits: false`, the revision that the request names. */
  readonly parent: string | null
  /** Stores the content of a following part. It is called for these entries in the order of the document. */
  readonly takeFollowing?: (
    entry: FollowingEntry, revposOf: (entry: FollowingEntry) => number,
  ) => Promise<AttachmentRecord>
}

/** Asks all replicas, so that a stub is not refused because one replica lags behind. */
const everyReplica = 1000

/**
 * Stores new content and finds the records that stubs refer to.
 * @returns undefined when the document has no attachments
 * @throws ApiError `missing_stub`, or an error of reading the entries or of storing the content
 */
export async function resolveAttachments(
  id: string, document: ParsedDocument, options: ResolutionOptions, request: RequestContext, services: Services,
): Promise<readonly AttachmentRecord[] | undefined> {
  if (document.attachments === null) return undefined
  const entries = await runWhileWanted(attachmentEntries(document), request, services)
  if (entries.length === 0) return undefined
  const { parent, newEdits, takeFollowing } = options
  const stubs = entries.some(entry => entry.kind === 'stub')
    ? await findStubs(id, entries, document, options, request, services)
    : new Map<string, AttachmentRecord>()
  const generation = parent === null ? 1 : parseRevision(parent).generation + 1
  const revposOf = ({ revpos }: InlineEntry | FollowingEntry): number => newEdits ? generation : revpos
  const records: AttachmentRecord[] = []
  for (const entry of entries) {
    if (entry.kind === 'stub') {
      const record = stubs.get(entry.name)
      if (record !== undefined) records.push(record)
      continue
    }
    if (entry.kind === 'inline') {
      records.push(await takeAttachment(
        id, { ...entry, revpos: revposOf(entry) }, chunksOf(entry.data, services), request, services,
      ))
    } else if (takeFollowing !== undefined) records.push(await takeFollowing(entry, revposOf))
    else throw new ApiError('bad_request', `Invalid attachment data for ${entry.name}`)
  }
  checkAttachmentHeads(id, records)
  return records
}

/** Bytes that are hashed and written between two pauses. */
const chunkBytes = 256 * 1024

async function* chunksOf(
  bytes: Uint8Array, { runtime: { turns } }: Services,
): AsyncGenerator<Uint8Array, void, undefined> {
  for (let start = 0; start < bytes.length; start += chunkBytes) {
    yield bytes.subarray(start, start + chunkBytes)
    await turns.pause()
  }
}

async function findStubs(
  id: string, entries: readonly AttachmentEntry[], document: ParsedDocument, { newEdits, parent }: ResolutionOptions,
  request: RequestContext, services: Services,
): Promise<ReadonlyMap<string, AttachmentRecord>> {
  const history = historyOf(document, parent)
  const base = newEdits ? parent : await nearestAncestor(id, history, request, services)
  const known = base === null ? undefined : await attachmentsOf(id, base, newEdits, request, services)
  const found = new Map(known?.map(record => [record.name, record]))
  // The revision is already stored and is not changed, so its stubs need no check.
  if (!newEdits && base === history[0]) return found
  for (const entry of entries) {
    if (entry.kind !== 'stub') continue
    const record = found.get(entry.name)
    if (record === undefined || (entry.revpos !== undefined && entry.revpos !== record.revpos)) {
      throw await refusal(id, entry, newEdits, base, request, services)
    }
  }
  return found
}

async function attachmentsOf(
  id: string, revision: string, majority: boolean, request: RequestContext, services: Services,
): Promise<readonly AttachmentRecord[]> {
  const opened = await services.coordinator.openRevisions(
    request.database, id, { revisions: [revision], latest: false, r: everyReplica, majority }, request,
  )
  const [first] = opened ?? []
  return first?.kind === 'found' ? first.revision.attachments ?? [] : []
}

/**
 * Returns the error for a stub without content. A write that is not based on a current leaf is a conflict, whatever its
 * stubs are.
 */
async function refusal(
  id: string, { name }: StubEntry, newEdits: boolean, base: string | null, request: RequestContext, services: Services,
): Promise<ApiError> {
  const missing = new ApiError('missing_stub', `Invalid attachment stub in ${id} for ${name}`)
  if (!newEdits) return missing
  const opened = await services.coordinator.openDocument(
    request.database, id, { body: false, r: everyReplica }, request,
  )
  if (opened === null) return missing
  const stands = base === null ? opened.leaves[0]!.deleted : opened.leaves.some(leaf => leaf.revision === base)
  return stands ? missing : new ApiError('conflict')
}

/** Returns the revisions that the document's `_revisions` lists, or the revision that is named, newest first. */
function historyOf({ path, revision }: ParsedDocument, named: string | null): readonly string[] {
  if (path !== null) return path.ids.map((hash, index) => formatRevision({ generation: path.start - index, hash }))
  const own = named ?? revision
  return own === null ? [] : [own]
}

/** Returns the newest revision of the history whose content is still stored, or null. */
async function nearestAncestor(
  id: string, history: readonly string[], request: RequestContext, services: Services,
): Promise<string | null> {
  if (history.length === 0) return null
  const opened = await services.coordinator.openDocument(
    request.database, id, { body: false, tree: true, r: everyReplica }, request,
  )
  const available = new Set(opened?.tree?.flatMap(availableRevisions))
  return history.find(revision => available.has(revision)) ?? null
}

function availableRevisions({ path, available }: Branch): string[] {
  return path.ids.flatMap((hash, index) =>
    available[index] ? [formatRevision({ generation: path.start - index, hash })] : [])
}
