import { gunzipSync, gzipSync } from 'node:zlib'
import { CompressionError } from './compression.ts'
import type { Compression } from './compression.ts'
import { stockBytesMax, stockGzip } from './stock-gzip.ts'

/** Gives the same bytes as `compression-zlib` without threads, for determinism. Reads the whole content into memory. */
export class MemoryCompression implements Compression {
  async* gzip(chunks: AsyncIterable<Uint8Array>, level: number): AsyncGenerator<Uint8Array, void, undefined> {
    const bytes = await whole(chunks)
    yield* pieces(
      bytes.length > stockBytesMax ? gzipSync(bytes, { level }) : Buffer.concat([...stockGzip([bytes], level)].flat()),
    )
  }

  async* gunzip(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
    const bytes = await whole(chunks)
    let unpacked: Uint8Array
    try {
      unpacked = gunzipSync(bytes)
    } catch (error) {
      throw new CompressionError((error as Error).message, { cause: error })
    }
    yield* pieces(unpacked)
  }
}

const chunkBytes = 64 * 1024

async function whole(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = []
  for await (const chunk of chunks) parts.push(new Uint8Array(chunk))
  return Buffer.concat(parts)
}

function* pieces(bytes: Uint8Array): Generator<Uint8Array, void, undefined> {
  for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes)
}
