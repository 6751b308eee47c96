import { createGunzip, createGzip } from 'node:zlib'
import type { Transform } from 'node:stream'
import { CompressionError } from './compression.ts'
import type { Compression } from './compression.ts'
import { stockBytesMax, stockGzip } from './stock-gzip.ts'
import type { Turns } from '../clock/turns.ts'

/** The maximum total of content that is held until it is known to be small. Beyond it, content is treated as large. */
const heldBytesMax = 64 * 1024 * 1024

interface Head { readonly chunks: readonly Uint8Array[]; readonly bytes: number; readonly complete: boolean }

/**
 * Compresses small content with pako in slices of the event loop, which gives the same bytes as the unmodified zlib
 * (`stock-gzip`). Compresses large content with Node's zlib on the thread pool, where a stream holds only a few chunks.
 */
export class ZlibCompression implements Compression {
  readonly #turns: Pick<Turns, 'pause'>
  #heldBytes = 0

  constructor(turns: Pick<Turns, 'pause'>) {
    this.#turns = turns
  }

  async* gzip(chunks: AsyncIterable<Uint8Array>, level: number): AsyncGenerator<Uint8Array, void, undefined> {
    const source = chunks[Symbol.asyncIterator]()
    const head = await this.#readHead(source)
    try {
      if (head.complete) yield* this.#stock(head.chunks, level)
      else yield* transformed(following(head.chunks, source), () => createGzip({ level, chunkSize: chunkBytes }))
    } finally {
      this.#heldBytes -= head.bytes
      if (!head.complete) await source.return?.()
    }
  }

  /** Reads the beginning of the content, or all of it when it is small. @throws any error of the source */
  async #readHead(source: AsyncIterator<Uint8Array>): Promise<Head> {
    const chunks: Uint8Array[] = []
    let bytes = 0
    try {
      while (bytes <= stockBytesMax && this.#heldBytes <= heldBytesMax) {
        const next = await source.next()
        if (next.done === true) return { chunks, bytes, complete: true }
        // Copy the chunk, because the source may reuse its memory.
        chunks.push(new Uint8Array(next.value))
        bytes += next.value.length
        this.#heldBytes += next.value.length
      }
      return { chunks, bytes, complete: false }
    } catch (error) {
      this.#heldBytes -= bytes
      throw error
    }
  }

  async* #stock(chunks: readonly Uint8Array[], level: number): AsyncGenerator<Uint8Array, void, undefined> {
    for (const ready of stockGzip(chunks, level)) {
      yield* ready
      await this.#turns.pause()
    }
  }

  gunzip(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    return transformed(chunks, () => createGunzip({ chunkSize: chunkBytes }))
  }
}

const chunkBytes = 64 * 1024

async function* following(
  head: readonly Uint8Array[], rest: AsyncIterator<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  yield* head
  for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value
}

async function* transformed(
  chunks: AsyncIterable<Uint8Array>, create: () => Transform,
): AsyncGenerator<Uint8Array, void, undefined> {
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
