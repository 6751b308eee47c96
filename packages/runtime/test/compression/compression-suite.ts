import { expect } from 'chai'
import { CompressionError } from '../../src/compression/compression.ts'
import type { Compression } from '../../src/compression/compression.ts'

/** What every `Compression` promises. */
export function compressionSuite(name: string, create: () => Compression): void {
  describe(`compression: ${name}`, () => {
    it('gives back what was compressed, in bounded pieces', async () => {
      const compression = create()
      const packed = await all(compression.gzip(repeated(40, 10_000), 8))
      const unpacked = await all(compression.gunzip(pieces(packed, 100)))
      expect(unpacked.equals(await all(repeated(40, 10_000)))).to.equal(true)
      expect(packed.length).to.be.lessThan(unpacked.length / 10)
    })

    it('makes the same bytes however the content is cut', async () => {
      const compression = create()
      const content = await all(repeated(10, 5000))
      const whole = await all(compression.gzip(pieces(content, content.length), 8))
      expect((await all(compression.gzip(pieces(content, 777), 8))).equals(whole)).to.equal(true)
    })

    it('compresses nothing to a gzip of nothing', async () => {
      const compression = create()
      const packed = await all(compression.gzip(pieces(Buffer.alloc(0), 1), 8))
      expect(packed.length).to.be.greaterThan(0)
      expect((await all(compression.gunzip(pieces(packed, 9)))).length).to.equal(0)
    })

    it('refuses what is no gzip, and gzip that ends too early', async () => {
      const compression = create()
      const packed = await all(compression.gzip(repeated(10, 1000), 8))
      expect(await failure(compression.gunzip(pieces(Buffer.from('no gzip'), 3)))).to.be.instanceOf(CompressionError)
      expect(await failure(compression.gunzip(pieces(packed.subarray(0, -9), 50)))).to.be.instanceOf(CompressionError)
    })

    it('passes the failure of its source on', async () => {
      const broken = new Error('the source broke')
      async function* source(): AsyncGenerator<Uint8Array> {
        yield Buffer.from('begun')
        throw broken
      }
      expect(await failure(create().gzip(source(), 8))).to.equal(broken)
    })

    it('may be left early', async () => {
      for await (const chunk of create().gunzip(pieces(await all(create().gzip(repeated(100, 5000), 8)), 1000))) {
        expect(chunk.length).to.be.greaterThan(0)
        break
      }
    })
  })
}

async function* repeated(count: number, length: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < count; at++) yield Buffer.alloc(length, `piece ${at} `)
}

async function* pieces(bytes: Uint8Array, length: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length)
}

async function all(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = []
  for await (const chunk of chunks) parts.push(chunk)
  return Buffer.concat(parts)
}

async function failure(chunks: AsyncIterable<Uint8Array>): Promise<unknown> {
  try {
    await all(chunks)
    return undefined
  } catch (error) {
    return error
  }
}
