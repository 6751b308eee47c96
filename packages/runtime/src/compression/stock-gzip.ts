import { Deflate } from 'pako'

/**
 * Content up to this size gets the bytes of the unmodified zlib; Node's zlib, which is several times faster, does the
 * rest.
 */
export const stockBytesMax = 1024 * 1024
/** What is compressed without a pause takes about a millisecond. */
const pieceBytes = 8 * 1024
const outputBytes = 64 * 1024
const noBytes = new Uint8Array(0)

/**
 * gzip as zlib 1.2 and 1.3 make it, and with it the digests that other CouchDB-compatible servers give: Node's zlib is
 * a modified one, whose output differs.
 *
 * @param level 1 to 9
 * @yields after each piece what is ready, which may be nothing
 */
export function* stockGzip(chunks: Iterable<Uint8Array>, level: number): Generator<readonly Uint8Array[], void> {
  const ready: Uint8Array[] = []
  const deflate = new Deflate({ gzip: true, level, chunkSize: outputBytes })
  deflate.onData = chunk => { ready.push(chunk) }
  for (const chunk of chunks) {
    for (let at = 0; at < chunk.length; at += pieceBytes) {
      deflate.push(chunk.subarray(at, at + pieceBytes), false)
      yield ready.splice(0)
    }
  }
  deflate.push(noBytes, true)
  yield ready
}
