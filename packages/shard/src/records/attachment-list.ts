import type { AttachmentRecord } from '@sectional/core'
import { ByteReader } from './byte-reader.ts'
import { ByteWriter } from './byte-writer.ts'

const gzipFlag = 1
const digestBytes = 16
const blobBytes = 32

/** Encodes the list of attachments, which is stored before the JSON of a body. */
export function writeAttachments(attachments: readonly AttachmentRecord[]): Buffer {
  const writer = new ByteWriter()
  writer.integer(attachments.length)
  for (const { name, contentType, revpos, digest, blob, length, encoding, storedLength } of attachments) {
    writer.byte(encoding === 'gzip' ? gzipFlag : 0)
    writer.text(name)
    writer.text(contentType)
    writer.integer(revpos)
    writer.hex(Buffer.from(digest, 'base64').toString('hex'))
    writer.hex(blob)
    writer.integer(length)
    writer.integer(storedLength)
  }
  return writer.finish()
}

/** Decodes the list of attachments and returns it with the JSON that follows it. */
export function readAttachments(
  bytes: Uint8Array,
): { readonly attachments: AttachmentRecord[]; readonly body: Uint8Array } {
  const reader = new ByteReader(bytes)
  const count = reader.integer()
  const attachments: AttachmentRecord[] = []
  for (let index = 0; index < count; index++) {
    const flags = reader.byte()
    attachments.push({
      name: reader.text(),
      contentType: reader.text(),
      revpos: reader.integer(),
      digest: Buffer.from(reader.hex(digestBytes), 'hex').toString('base64'),
      blob: reader.hex(blobBytes),
      length: reader.integer(),
      encoding: (flags & gzipFlag) === 0 ? 'identity' : 'gzip',
      storedLength: reader.integer(),
    })
  }
  return { attachments, body: reader.rest() }
}
