/** Documents on their way out: bodies are spliced into answers, never parsed. */

export interface SplicedDocument {
  readonly id: string
  readonly revision: string
  /** JSON object text, as stored. */
  readonly body: Uint8Array
  /** Members behind the body as JSON text without braces: `"_deleted":true,"_conflicts":["1-a"]`; empty: none. */
  readonly extra?: string
}

const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const COMMA = 0x2c

/** `{"_id":..,"_rev":..,<body's members>,<extra>}` as UTF-8. */
export function spliceDocument(document: SplicedDocument): Buffer {
  const { body, extra = '' } = document
  if (body[0] !== OPEN_BRACE || body[body.length - 1] !== CLOSE_BRACE) throw new RangeError('a document body must be a JSON object')
  const head = `{"_id":${JSON.stringify(document.id)},"_rev":${JSON.stringify(document.revision)}`
  const bodyLength = body.length - 2
  // Three bytes is the most that a UTF-16 unit takes in UTF-8.
  const out = Buffer.allocUnsafe(3 * (head.length + extra.length) + bodyLength + 3)
  let at = out.write(head, 0, 'utf8')
  if (bodyLength > 0) {
    out[at++] = COMMA
    out.set(body.subarray(1, body.length - 1), at)
    at += bodyLength
  }
  if (extra !== '') {
    out[at++] = COMMA
    at += out.write(extra, at, 'utf8')
  }
  out[at++] = CLOSE_BRACE
  return out.subarray(0, at)
}
