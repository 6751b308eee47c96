import { Deflate } from 'pako'

/**
 * Content of at most this size gets the bytes of the unmodified zlib. Larger content is compressed by Node's zlib,
 * which is several times faster.
 */
export const stockBytesMax = 1024 * 1024
/** The number of bytes that are compressed without a pause, which takes about a millisecond. */
const pieceBytes = 8 * 1024
const outputBytes = 64 * 1024
const noBytes = new Uint8Array(0)

/**
 * Compresses as zlib 1.2 and 1.3 do, so that digests of attachments equal those of other CouchDB-compatible servers.
 * Node contains a modified zlib, whose output differs.
 *
 * @param level 1 to 9
 * @yields the output that is ready after each piece, possibly nothing
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
