/**
 * Streaming gzip. Content of at most `stockBytesMax` bytes gets the same bytes as the unmodified zlib gives. Both
 * implementations run `compression-suite`.
 */
export interface Compression {
  /** @param level 1 (fast) to 9 (small) */
  gzip(chunks: AsyncIterable<Uint8Array>, level: number): AsyncIterable<Uint8Array>
  /** @throws CompressionError when the bytes are not in gzip format or end too early */
  gunzip(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>
}

export class CompressionError extends Error {
  override readonly name = 'CompressionError'
}
