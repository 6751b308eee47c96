import { hash } from 'node:crypto'
import { gunzipSync } from 'node:zlib'
import { expect } from 'chai'
import { CompressionError } from '../../src/compression/compression.ts'
import type { Compression } from '../../src/compression/compression.ts'

/** The tests that every `Compression` must pass. */
export function compressionSuite(name: string, create: () => Compression): void {
  describe(`compression: ${name}`, () => {
    it('restores compressed content in bounded pieces', async () => {
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

    it('makes the bytes of the unmodified zlib of small content, and gzip of large content too', async () => {
      const compression = create()
      const summary = async (content: Buffer, level: number): Promise<unknown[]> => {
        const packed = await all(compression.gzip(pieces(content, 10_000), level))
        return [content.length, level, packed.length, hash('md5', packed, 'base64')]
      }
      expect(await summary(Buffer.from('This is a base64 encoded text'), 8)).to.deep.equal([
        29, 8, 47, 'qUUYqS41RhwF0TrCsTAxFg==',
      ])
      // Recorded from zlib 1.2.13.
      for (const recorded of [
        [1000, 8, 490, 'VXjtAnEuwSLQhXFqlahGaw=='],
        [70000, 8, 29831, 'JP+7BvRn6dGvAo/24L5isg=='],
        [70000, 1, 33309, 'jn0R19VHN0TdopL/wDtXSQ=='],
        [300000, 9, 124042, '6RjuqevFfQ8KRPpsd47ivg=='],
      ] as const) expect(await summary(numbers(recorded[0]), recorded[1])).to.deep.equal(recorded)
      const large = numbers(1_500_000)
      const packed = await all(compression.gzip(pieces(large, 100_000), 8))
      expect(gunzipSync(packed).equals(large)).to.equal(true)
    })

    it('compresses empty content to a gzip stream of empty content', async () => {
      const compression = create()
      const packed = await all(compression.gzip(pieces(Buffer.alloc(0), 1), 8))
      expect(packed.length).to.be.greaterThan(0)
      expect((await all(compression.gunzip(pieces(packed, 9)))).length).to.equal(0)
    })

    it('refuses bytes that are not gzip, and gzip that ends too early', async () => {
      const compression = create()
      const packed = await all(compression.gzip(repeated(10, 1000), 8))
      expect(await failure(compression.gunzip(pieces(Buffer.from('no gzip'), 3)))).to.be.instanceOf(CompressionError)
      expect(await failure(compression.gunzip(pieces(packed.subarray(0, -9), 50)))).to.be.instanceOf(CompressionError)
    })

    it('fails with the error of its source', async () => {
      const broken = new Error('the source broke')
      async function* source(): AsyncGenerator<Uint8Array> {
        yield Buffer.from('begun')
        throw broken
      }
      expect(await failure(create().gzip(source(), 8))).to.equal(broken)
    })

    it('can be stopped early', async () => {
      for await (const chunk of create().gunzip(pieces(await all(create().gzip(repeated(100, 5000), 8)), 1000))) {
        expect(chunk.length).to.be.greaterThan(0)
        break
      }
    })
  })
}

/** Returns text that compresses as natural text does; the same in each run. */
function numbers(length: number): Buffer {
  const parts: string[] = []
  let state = 1n
  for (let made = 0; made < length; made += parts.at(-1)!.length) {
    state = (state * 1_103_515_245n + 12_345n) & 0x7fff_ffffn
    parts.push(`${(state >> 8n) % 3000n} `)
  }
  return Buffer.from(parts.join('').slice(0, length))
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
