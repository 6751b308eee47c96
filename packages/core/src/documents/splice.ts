/** Documents on their way out: bodies are spliced into answers, never parsed. */
import { asBuffer } from '../encoding/as-buffer.ts'

export interface SplicedDocument {
  readonly id: string
  readonly revision: string
  /** JSON object text, as stored. */
  readonly body: Uint8Array
  /** Members behind the body as JSON text without braces: `"_deleted":true,"_conflicts":["1-a"]`; empty: none. */
  readonly extra?: string
}

const openBraceByte = 0x7b
const closeBraceByte = 0x7d

/** What goes before and behind the body's own members, which are what lies between its braces. */
export interface DocumentFrame { readonly head: string; readonly tail: string }

/** `{"_id":..,"_rev":..,<body's members>,<extra>}`, for whoever writes the pieces one after the other. */
export function documentFrame({ id, revision, body, extra = '' }: SplicedDocument): DocumentFrame {
  if (body[0] !== openBraceByte || body[body.length - 1] !== closeBraceByte) {
    throw new RangeError('a document body must be a JSON object')
  }
  return {
    head: `{"_id":${JSON.stringify(id)},"_rev":${JSON.stringify(revision)}${body.length === 2 ? '' : ','}`,
    tail: extra === '' ? '}' : `,${extra}}`,
  }
}

/** The same as UTF-8. */
export function spliceDocument(document: SplicedDocument): Buffer {
  const { head, tail } = documentFrame(document)
  const { body } = document
  // Three bytes is the most that a UTF-16 unit takes in UTF-8.
  const out = Buffer.allocUnsafe(3 * (head.length + tail.length) + body.length)
  let at = out.write(head, 0, 'utf8')
  at += asBuffer(body).copy(out, at, 1, body.length - 1)
  at += out.write(tail, at, 'utf8')
  return out.subarray(0, at)
}
