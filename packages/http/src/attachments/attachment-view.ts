/**
 * `_attachments` of a document as clients read it (docs/reference/attachments.md#attachments-in-a-document): stubs,
 * Base64, or parts that follow.
 */
import { asBuffer, parseRevision, type AttachmentRecord, type RevisionPath } from '@sectional/core'
import type { RequestContext } from '../request/request-context.ts'
import type { JsonWriter } from '../messages/json-writer.ts'
import type { Services } from '../services/services.ts'

export interface AttachmentFlags {
  /** Send the content. */
  readonly attachments: boolean
  /** Say how content is stored (`att_encoding_info`). */
  readonly encodingInfo: boolean
  /** Of the content only what none of these revisions has; null: all. */
  readonly attachmentsSince: readonly string[] | null
}

export const stubFlags: AttachmentFlags = Object.freeze({
  attachments: false, encodingInfo: false, attachmentsSince: null,
})

/**
 * The attachments whose content a reader wants: those written after the newest listed revision that it descends from.
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

/** `"_attachments":{...}`, the wanted ones as parts that follow, the others as stubs. */
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
  return `${JSON.stringify(name)}:{"content_type":${JSON.stringify(contentType)},"revpos":${revpos},"digest":"md5-${digest}"`
}

function encodingOf({ encoding, storedLength }: AttachmentRecord): string {
  return encoding === 'gzip' ? `,"encoding":"gzip","encoded_length":${storedLength}` : ''
}

/** Writes `"_attachments":{...}` with the wanted content as Base64, a chunk at a time. */
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

/** The content as clients see it, decompressed. */
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
