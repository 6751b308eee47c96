import { createGunzip, createGzip } from 'node:zlib'
import type { Transform } from 'node:stream'
import { CompressionError } from './compression.ts'
import type { Compression } from './compression.ts'

/** zlib on the thread pool; a stream holds at most a few chunks. */
export class ZlibCompression implements Compression {
  gzip(chunks: AsyncIterable<Uint8Array>, level: number): AsyncIterable<Uint8Array> {
    return transformed(chunks, () => createGzip({ level, chunkSize: chunkBytes }))
  }

  gunzip(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    return transformed(chunks, () => createGunzip({ chunkSize: chunkBytes }))
  }
}

const chunkBytes = 64 * 1024

async function* transformed(chunks: AsyncIterable<Uint8Array>, create: () => Transform): AsyncGenerator<Uint8Array, void, undefined> {
  const transform = create()
  let sourceFailure: { readonly error: unknown } | undefined
  const feeding = feed(chunks, transform).catch((error: unknown) => {
    sourceFailure = { error }
    transform.destroy(error instanceof Error ? error : new Error(String(error)))
  })
  try {
    for await (const chunk of transform) yield chunk as Buffer
  } catch (error) {
    if (sourceFailure !== undefined) throw sourceFailure.error
    throw new CompressionError((error as Error).message, { cause: error })
  } finally {
    transform.destroy()
    await feeding
  }
}

async function feed(chunks: AsyncIterable<Uint8Array>, transform: Transform): Promise<void> {
  for await (const chunk of chunks) {
    if (transform.destroyed) return
    if (!transform.write(chunk)) await drained(transform)
  }
  transform.end()
}

function drained(transform: Transform): Promise<void> {
  return new Promise(resolve => {
    const done = (): void => {
      transform.off('drain', done)
      transform.off('close', done)
      resolve()
    }
    transform.on('drain', done)
    transform.on('close', done)
    if (transform.destroyed) done()
  })
}
