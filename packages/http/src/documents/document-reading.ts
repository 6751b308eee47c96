/** Reads one revision of a document together with the metadata that the request asks for. */
import {
  ApiError, checkDocumentId, formatRevision, parseRevision, spliceDocument, type AttachmentRecord, type Branch,
  type DocumentRevision, type Leaf, type RevisionPath,
  type SplicedDocument,
} from '@sectional/core'
import {
  attachmentsMember, stubFlags, wantedAttachments, writeAttachmentData, type AttachmentFlags,
} from '../attachments/attachment-view.ts'
import type { JsonWriter } from '../messages/json-writer.ts'
import type { Query } from '../request/query.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

/**
 * Checks the id in a partitioned database, where an id without a partition belongs to no shard.
 * @throws ApiError `illegal_docid`, `illegal_partition`
 */
export function checkPlacedId(id: string, { database }: RequestContext): void {
  if (database.partitioned && !id.startsWith('_')) checkDocumentId(id, { partitioned: true })
}

/** The query flags of docs/reference/documents.md#get-dbid. A flag is set only by the exact text `true`. */
export interface ReadFlags extends AttachmentFlags {
  readonly revs: boolean
  readonly revsInfo: boolean
  readonly localSeq: boolean
  readonly conflicts: boolean
  readonly deletedConflicts: boolean
  readonly latest: boolean
}

export const noFlags: ReadFlags = Object.freeze({
  ...stubFlags, revs: false, revsInfo: false, localSeq: false, conflicts: false, deletedConflicts: false, latest: false,
})

export function readFlags(query: Query): ReadFlags {
  if (query.isEmpty) return noFlags
  const meta = query.flag('meta')
  const attachmentsSince = query.has('atts_since') ? revisionList(query.json('atts_since')) : null
  return {
    attachments: attachmentsSince !== null || query.flag('attachments'),
    encodingInfo: query.flag('att_encoding_info'),
    attachmentsSince,
    revs: query.flag('revs'),
    revsInfo: meta || query.flag('revs_info'),
    localSeq: query.flag('local_seq'),
    conflicts: meta || query.flag('conflicts'),
    deletedConflicts: meta || query.flag('deleted_conflicts'),
    latest: query.flag('latest'),
  }
}

function revisionList(value: unknown): readonly string[] {
  if (!Array.isArray(value)) throw new ApiError('bad_request', 'Invalid list of revisions')
  return value.map(revision => formatRevision(parseRevision(revision)))
}

/** A revision and its metadata before they are formatted. */
export interface ShownRevision {
  readonly id: string
  readonly revision: string
  readonly deleted: boolean
  readonly body: Uint8Array
  readonly attachments?: readonly AttachmentRecord[]
  readonly path?: RevisionPath
  /** The document's leaves, branches and sequence are present only when a flag asks for them. */
  readonly leaves?: readonly Leaf[]
  readonly tree?: readonly Branch[]
  readonly sequence?: number
}

export interface ShownDocument {
  readonly json: Buffer
  /** Whether the JSON contains more than the revision, such as conflicts. The response then has no ETag. */
  readonly hasMeta: boolean
}

/**
 * Returns the JSON of a revision with its attachments as stubs. Special members have the order of
 * docs/reference/documents.md#special-members.
 */
export function showRevision(shown: ShownRevision, flags: ReadFlags): ShownDocument {
  return showWith(shown, flags, attachmentsText(shown, null, flags.encodingInfo))
}

/**
 * Like `showRevision`, but wanted attachments are marked with `follows` and returned, so that their content can be sent
 * in parts.
 */
export function showRelated(
  shown: ShownRevision, flags: ReadFlags,
): ShownDocument & { readonly following: ReadonlySet<AttachmentRecord> } {
  const following = wantedAttachments(shown.attachments, shown.path, flags)
  return { ...showWith(shown, flags, attachmentsText(shown, following, true)), following }
}

/** Like `showRevision`, but returns the pieces of the JSON so that the body need not be copied. */
export function splicedRevision(shown: ShownRevision, flags: ReadFlags): SplicedDocument {
  return spliced(shown, membersOf(shown, flags, attachmentsText(shown, null, flags.encodingInfo)))
}

/**
 * Writes the JSON of a revision with wanted attachments as Base64. When content is written, the result is a promise to
 * await.
 */
export function writeRevision(
  writer: JsonWriter, shown: ShownRevision, flags: ReadFlags, request: RequestContext, services: Services,
): Promise<void> | undefined {
  const wanted = shown.attachments === undefined ? undefined : wantedAttachments(shown.attachments, shown.path, flags)
  if (wanted !== undefined && wanted.size > 0) return writeWithContent(writer, shown, wanted, flags, request, services)
  writer.document(splicedRevision(shown, flags))
  return undefined
}

async function writeWithContent(
  writer: JsonWriter, shown: ShownRevision, wanted: ReadonlySet<AttachmentRecord>, flags: ReadFlags,
  request: RequestContext, services: Services,
): Promise<void> {
  const { json } = showWith(shown, flags, '')
  writer.bytes(json.subarray(0, json.length - 1))
  writer.text(',')
  await writeAttachmentData(writer, shown.id, shown.attachments ?? [], wanted, flags.encodingInfo, request, services)
  writer.text('}')
}

function attachmentsText(
  { attachments }: ShownRevision, following: ReadonlySet<AttachmentRecord> | null, encodingInfo: boolean,
): string {
  return attachments === undefined ? '' : attachmentsMember(attachments, following, encodingInfo)
}

function showWith(shown: ShownRevision, flags: ReadFlags, attachments: string): ShownDocument {
  const members = membersOf(shown, flags, attachments)
  return { json: spliceDocument(spliced(shown, members)), hasMeta: members.hasMeta }
}

function spliced({ id, revision, body }: ShownRevision, { text }: RevisionMembers): SplicedDocument {
  return { id, revision, body, extra: text }
}

/**
 * The members that follow the document's own ones. `hasMeta` is true when some of them are not part of the revision.
 */
interface RevisionMembers { readonly text: string; readonly hasMeta: boolean }

const noMembers: RevisionMembers = { text: '', hasMeta: false }

function membersOf(shown: ShownRevision, flags: ReadFlags, attachments: string): RevisionMembers {
  if (flags === noFlags && attachments === '' && !shown.deleted) return noMembers
  const members: string[] = []
  if (shown.deleted) members.push('"_deleted":true')
  if (flags.revs && shown.path !== undefined) {
    members.push(`"_revisions":${JSON.stringify({ start: shown.path.start, ids: shown.path.ids })}`)
  }
  const plain = members.length
  if (flags.revsInfo && shown.tree !== undefined) {
    members.push(`"_revs_info":${JSON.stringify(revisionsInfo(shown.tree, shown.revision))}`)
  }
  if (flags.localSeq && shown.sequence !== undefined) members.push(`"_local_seq":"${shown.sequence}"`)
  if (flags.conflicts) pushLosers(members, '_conflicts', shown.leaves, false)
  if (flags.deletedConflicts) pushLosers(members, '_deleted_conflicts', shown.leaves, true)
  const hasMeta = members.length > plain
  if (attachments !== '') members.push(attachments)
  return { text: members.join(','), hasMeta }
}

function pushLosers(members: string[], name: string, leaves: readonly Leaf[] | undefined, deleted: boolean): void {
  if (leaves === undefined || leaves.length < 2) return
  const losers = leaves.slice(1).filter(leaf => leaf.deleted === deleted).map(leaf => leaf.revision)
  if (losers.length > 0) members.push(`"${name}":${JSON.stringify(losers)}`)
}

function revisionsInfo(tree: readonly Branch[], revision: string): { rev: string; status: string }[] {
  const { generation, hash } = parseRevision(revision)
  for (const { path, available, tombstones } of tree) {
    const from = path.start - generation
    if (path.ids[from] !== hash) continue
    return path.ids.slice(from).map((id, offset) => ({
      rev: formatRevision({ generation: generation - offset, hash: id }),
      status: tombstones[from + offset] ? 'deleted' : available[from + offset] ? 'available' : 'missing',
    }))
  }
  return []
}

/** Returns the ancestry of a revision in the tree, or undefined when the tree does not contain it. */
export function pathOf(tree: readonly Branch[] | undefined, revision: string): RevisionPath | undefined {
  const { generation, hash } = parseRevision(revision)
  for (const { path } of tree ?? []) {
    const from = path.start - generation
    if (path.ids[from] === hash) return { start: generation, ids: path.ids.slice(from) }
  }
  return undefined
}

/** Converts a revision that the coordinator returned. */
export function shownRevision({ id, path, deleted, body, attachments }: DocumentRevision): ShownRevision {
  const revision = formatRevision({ generation: path.start, hash: path.ids[0]! })
  return { id, revision, deleted, body, path, ...(attachments && { attachments }) }
}

/**
 * Opens the winner.
 * @throws ApiError `missing` or `deleted`
 */
export async function openWinner(
  id: string, flags: ReadFlags, options: { readonly r?: number; readonly tombstone?: boolean }, request: RequestContext,
  services: Services,
): Promise<ShownRevision> {
  const tree = flags.revs || flags.revsInfo || flags.attachmentsSince !== null
  const opened = await services.coordinator.openDocument(request.database, id, { tree, r: options.r }, request)
  if (opened === null) throw new ApiError('missing')
  const winner = opened.leaves[0]!
  if (winner.deleted && options.tombstone !== true) throw new ApiError('deleted')
  if (opened.body === undefined) throw new ApiError('missing')
  return {
    id, revision: winner.revision, deleted: winner.deleted, body: opened.body,
    ...(opened.attachments && { attachments: opened.attachments }),
    path: flags.revs || flags.attachmentsSince !== null ? pathOf(opened.tree, winner.revision) : undefined,
    leaves: opened.leaves, tree: opened.tree, sequence: opened.sequence,
  }
}

/**
 * Opens a named revision, which may be a tombstone. Metadata of the whole document, such as conflicts, is not read.
 * @throws ApiError `missing`
 */
export async function openRevision(
  id: string, revision: string, flags: ReadFlags, r: number | undefined, request: RequestContext, services: Services,
): Promise<ShownRevision> {
  const found = await services.coordinator.openRevisions(
    request.database, id, { revisions: [revision], latest: flags.latest, r }, request,
  )
  const first = found?.[0]
  if (first === undefined || first.kind === 'missing') throw new ApiError('missing')
  return shownRevision(first.revision)
}
