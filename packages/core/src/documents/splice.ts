/** Splices the bytes of stored bodies into answers, without parsing them. */
import { asBuffer } from '../encoding/as-buffer.ts'

export interface SplicedDocument {
  readonly id: string
  readonly revision: string
  /** JSON object text, as stored. */
  readonly body: Uint8Array
  /** Members after those of the body, as JSON text without braces: `"_deleted":true,"_conflicts":["1-a"]`. */
  readonly extra?: string
}

const openBraceByte = 0x7b
const closeBraceByte = 0x7d

/** The text before (`head`) and after (`tail`) the body's own members, that is, the bytes between the body's braces. */
export interface DocumentFrame { readonly head: string; readonly tail: string }

/** Returns the frame of `{"_id":..,"_rev":..,<body's members>,<extra>}`, for callers that write the pieces in turn. */
export function documentFrame({ id, revision, body, extra = '' }: SplicedDocument): DocumentFrame {
  if (body[0] !== openBraceByte || body[body.length - 1] !== closeBraceByte) {
    throw new RangeError('a document body must be a JSON object')
  }
  return {
    head: `{"_id":${JSON.stringify(id)},"_rev":${JSON.stringify(revision)}${body.length === 2 ? '' : ','}`,
    tail: extra === '' ? '}' : `,${extra}}`,
  }
}

/** Returns the whole document as UTF-8. */
export function spliceDocument(document: SplicedDocument): Buffer {
  const { head, tail } = documentFrame(document)
  const { body } = document
  // A UTF-16 unit takes at most three bytes in UTF-8.
  const out = Buffer.allocUnsafe(3 * (head.length + tail.length) + body.length)
  let at = out.write(head, 0, 'utf8')
  at += asBuffer(body).copy(out, at, 1, body.length - 1)
  // Most documents have no further members, and a byte costs less than a text.
  if (tail.length === 1) out[at++] = closeBraceByte
  else at += out.write(tail, at, 'utf8')
  return out.subarray(0, at)
}
