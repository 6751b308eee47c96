/**
 * Writes `_attachments` of a document for clients (docs/reference/attachments.md#attachments-in-a-document): as stubs,
 * as Base64, or as references to parts that follow.
 */
import { asBuffer, parseRevision, type AttachmentRecord, type RevisionPath } from '@sectional/core'
import type { RequestContext } from '../request/request-context.ts'
import type { JsonWriter } from '../messages/json-writer.ts'
import type { Services } from '../services/services.ts'

export interface AttachmentFlags {
  /** Include the content of attachments. */
  readonly attachments: boolean
  /** Include how the content is stored (`att_encoding_info`). */
  readonly encodingInfo: boolean
  /** Revisions that the reader already has: only attachments that are newer are included. null includes all of them. */
  readonly attachmentsSince: readonly string[] | null
}

export const stubFlags: AttachmentFlags = Object.freeze({
  attachments: false, encodingInfo: false, attachmentsSince: null,
})

/**
 * Returns the attachments whose content the reader lacks: those written after the newest of its listed revisions that
 * is an ancestor of this revision.
 */
export function wantedAttachments(
  attachments: readonly AttachmentRecord[] | undefined, path: RevisionPath | undefined, flags: AttachmentFlags,
): ReadonlySet<AttachmentRecord> {
  if (!flags.attachments || attachments === undefined) return new Set()
  const known = knownGeneration(path, flags.attachmentsSince ?? [])
  return new Set(attachments.filter(({ revpos }) => known === 0 || revpos > known))
}

function knownGeneration(path: RevisionPath | undefined, since: readonly string[]): number {
  let newest = 0
  for (const revision of since) {
    const { generation, hash } = parseRevision(revision)
    if (path?.ids[path.start - generation] === hash) newest = Math.max(newest, generation)
  }
  return newest
}

/**
 * Returns the text `"_attachments":{...}` with `follows` for the attachments of `following` and stubs for the others.
 */
export function attachmentsMember(
  attachments: readonly AttachmentRecord[], following: ReadonlySet<AttachmentRecord> | null, encodingInfo: boolean,
): string {
  const entries = attachments.map(record => {
    const rest = following?.has(record) ? '"follows":true' : '"stub":true'
    return `${opening(record)},"length":${record.length},${rest}${encodingInfo ? encodingOf(record) : ''}}`
  })
  return `"_attachments":{${entries.join()}}`
}

function opening({ name, contentType, revpos, digest }: AttachmentRecord): string {
  const digestText = `"digest":"md5-${digest}"`
  return `${JSON.stringify(name)}:{"content_type":${JSON.stringify(contentType)},"revpos":${revpos},${digestText}`
}

function encodingOf({ encoding, storedLength }: AttachmentRecord): string {
  return encoding === 'gzip' ? `,"encoding":"gzip","encoded_length":${storedLength}` : ''
}

/** Writes `"_attachments":{...}` with the wanted content as Base64, chunk by chunk. */
export async function writeAttachmentData(
  writer: JsonWriter, id: string, attachments: readonly AttachmentRecord[], wanted: ReadonlySet<AttachmentRecord>,
  encodingInfo: boolean,
  request: RequestContext, services: Services,
): Promise<void> {
  writer.text('"_attachments":{')
  for (const [index, record] of attachments.entries()) {
    if (index > 0) writer.text(',')
    writer.text(opening(record))
    if (wanted.has(record)) {
      writer.text(',"data":"')
      await writeBase64(writer, identityContent(id, record, request, services))
      writer.text('"')
    } else {
      writer.text(`,"length":${record.length},"stub":true`)
    }
    writer.text(`${encodingInfo ? encodingOf(record) : ''}}`)
  }
  writer.text('}')
}

/** Returns the decompressed content. */
export function identityContent(
  id: string, record: AttachmentRecord, request: RequestContext, services: Services,
): AsyncIterable<Uint8Array> {
  const stored = services.coordinator.readBlob(request.database, id, record, null, request)
  return record.encoding === 'gzip' ? services.runtime.compression.gunzip(stored) : stored
}

async function writeBase64(writer: JsonWriter, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  let rest: Uint8Array = Buffer.alloc(0)
  for await (const chunk of chunks) {
    const bytes = rest.length === 0 ? asBuffer(chunk) : Buffer.concat([rest, chunk])
    const whole = bytes.length - bytes.length % 3
    writer.text(bytes.toString('base64', 0, whole))
    rest = bytes.subarray(whole)
    await writer.flushFull()
  }
  if (rest.length > 0) writer.text(Buffer.from(rest).toString('base64'))
}
