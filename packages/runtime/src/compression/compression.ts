/**
 * Streaming gzip. Content up to `stockBytesMax` gets the bytes of the unmodified zlib. `compression-suite` holds both
 * versions.
 */
export interface Compression {
  /** @param level 1 (fast) to 9 (small) */
  gzip(chunks: AsyncIterable<Uint8Array>, level: number): AsyncIterable<Uint8Array>
  /** @throws CompressionError when the bytes are not gzip, or end too early */
  gunzip(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>
}

export class CompressionError extends Error {
  override readonly name = 'CompressionError'
}
