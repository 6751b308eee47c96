/**
 * The tests that every `BlobStorage` must pass; each implementation runs them under mocha. Exported as
 * `@sectional/runtime/blob-store-suite`.
 */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { blobChunkBytes, BlobError } from './blob-store.ts'
import type { BlobRange, BlobStorage, BlobStore } from './blob-store.ts'

export interface BlobStoreSuiteOptions {
  readonly create: () => Promise<BlobStorage>
  /** Replaces the stored bytes of a hash by the result of a function. */
  readonly damage: (
    storage: BlobStorage, store: string, hash: string, change: (stored: Uint8Array) => Uint8Array,
  ) => Promise<void>
  readonly destroy: (storage: BlobStorage) => Promise<void>
}

const storeName = 'attachments'
const large = Uint8Array.from({ length: 2 * blobChunkBytes + 100 }, (_, index) => index % 251)

export function blobStoreSuite(name: string, options: BlobStoreSuiteOptions): void {
  describe(`${name} as a blob store`, () => {
    let storage: BlobStorage
    let store: BlobStore
    beforeEach(async () => {
      storage = await options.create()
      store = await storage.open(storeName)
    })
    afterEach(async () => {
      await store.close()
      await options.destroy(storage)
    })
    describe('writing', () => writing(() => store))
    describe('reading', () => reading(() => store))

    describe(
      'with damage', () => damage(() => store, (hash, change) => options.damage(storage, storeName, hash, change)),
    )

    it('keeps finished blobs and forgets unfinished ones when it is opened again', async () => {
      const hash = await write(store, [large])
      const unfinished = await store.create()
      await unfinished.write(large.subarray(1))
      await store.close()
      store = await storage.open(storeName)
      assert.deepEqual(await collect(store.list()), [hash])
      assert.equal(Buffer.compare(await read(store, hash), large), 0)
      assert.equal(await outcome(unfinished.finish()), 'closed')
    })
  })
}

function writing(store: () => BlobStore): void {
  it('names a blob by the SHA-256 of its bytes, however they were cut', async () => {
    const hash = createHash('sha256').update(large).digest('hex')
    assert.equal(await write(store(), [large]), hash)
    assert.equal(await write(store(), [large.subarray(0, 7), new Uint8Array(0), large.subarray(7)]), hash)
    assert.deepEqual(await collect(store().list()), [hash])
    assert.equal(await store().length(hash), large.length)
  })

  it('keeps the order of many chunks, whatever their sizes', async () => {
    for (const bytes of [1000, 70_000, 600_000]) {
      const whole = Buffer.alloc(1_500_000, Uint8Array.from({ length: 251 }, (_, index) => index))
      const chunks = Array.from(
        { length: Math.ceil(whole.length / bytes) }, (_, index) => whole.subarray(index * bytes, (index + 1) * bytes),
      )
      assert.equal(Buffer.compare(await read(store(), await write(store(), chunks)), whole), 0)
    }
  })

  it('stores blobs of every length', async () => {
    for (const length of [0, 1, 4, blobChunkBytes - 1, blobChunkBytes, blobChunkBytes + 1, 2 * blobChunkBytes]) {
      const hash = await write(store(), [large.subarray(0, length)])
      assert.equal(await store().length(hash), length)
      assert.equal(Buffer.compare(await read(store(), hash), large.subarray(0, length)), 0)
    }
  })

  it('leaves nothing of an aborted blob', async () => {
    const writer = await store().create()
    await writer.write(large)
    await writer.abort()
    await writer.abort()
    assert.deepEqual(await collect(store().list()), [])
    assert.equal(await outcome(writer.write(large)), 'closed')
    assert.equal(await outcome(writer.finish()), 'closed')
  })

  it('deletes blobs, and ignores missing ones', async () => {
    const hash = await write(store(), [large])
    await store().delete(hash)
    await store().delete(hash)
    assert.equal(await store().has(hash), false)
    assert.deepEqual(await collect(store().list()), [])
  })
}

function reading(store: () => BlobStore): void {
  it('gives ranges, cut to the length of the blob', async () => {
    const hash = await write(store(), [large])
    const cases: readonly BlobRange[] = [
      { start: 10, end: 20 }, { start: blobChunkBytes - 1, end: blobChunkBytes + 1 }, { start: 5 }, { end: 5 },
      { start: large.length }, { start: 0, end: 1e9 }, { start: 7, end: 7 },
    ]
    for (const range of cases) {
      assert.equal(Buffer.compare(await read(store(), hash, range), large.slice(range.start, range.end)), 0)
    }
  })

  it('gives chunks of a bounded size', async () => {
    const hash = await write(store(), [large])
    for await (const chunk of store().open(hash)) assert(chunk.length <= blobChunkBytes)
  })

  it('can stop early', async () => {
    const hash = await write(store(), [large])
    for await (const chunk of store().open(hash)) {
      assert(chunk.length > 0)
      break
    }
  })

  it('reports that a blob is missing', async () => {
    const hash = 'a'.repeat(64)
    assert.equal(await store().has(hash), false)
    assert.equal(await outcome(read(store(), hash)), 'missing')
  })

  it('refuses names that are not a hash', async () => {
    assert.throws(() => store().open('../secret'), TypeError)
    await assert.rejects(store().delete('..'), TypeError)
  })
}

function damage(
  store: () => BlobStore, change: (hash: string, change: (stored: Uint8Array) => Uint8Array) => Promise<void>,
): void {
  const flip = (at: number) => (stored: Uint8Array) => {
    const changed = Uint8Array.from(stored)
    changed[at]! ^= 1
    return changed
  }
  /** Returns the bytes that were read, and `done` or the code of the error. */
  async function given(hash: string, range?: BlobRange): Promise<[number, string]> {
    let bytes = 0
    const end = await outcome((async () => {
      for await (const chunk of store().open(hash, range)) {
        assert.equal(
          Buffer.compare(
            chunk, large.subarray((range?.start ?? 0) + bytes, (range?.start ?? 0) + bytes + chunk.length),
          ),
          0,
        )
        bytes += chunk.length
      }
    })())
    return [bytes, end]
  }

  it('returns the sound chunks, and an error in place of the first damaged one', async () => {
    for (const [at, sound] of [
      [0, 0], [blobChunkBytes - 1, 0], [blobChunkBytes, blobChunkBytes], [large.length - 1, 2 * blobChunkBytes],
    ] as const) {
      const hash = await write(store(), [large])
      await change(hash, flip(at))
      assert.deepEqual(await given(hash), [sound, 'corrupt'])
    }
  })

  it('checks ranges, and returns sound ones', async () => {
    const hash = await write(store(), [large])
    await change(hash, flip(blobChunkBytes + 5))
    assert.deepEqual(await given(hash, { start: 10, end: 20 }), [10, 'done'])
    assert.deepEqual(await given(hash, { start: 2 * blobChunkBytes + 1 }), [99, 'done'])
    assert.deepEqual(await given(hash, { start: 10, end: blobChunkBytes + 1 }), [blobChunkBytes - 10, 'corrupt'])
    assert.deepEqual(await given(hash, { start: 2 * blobChunkBytes - 1 }), [0, 'corrupt'])
  })

  it('returns no bytes of blobs that were cut off or exchanged', async () => {
    const other = await write(store(), [large.subarray(0, blobChunkBytes)])
    let stored = new Uint8Array(0)
    await change(other, bytes => stored = Uint8Array.from(bytes))
    const hash = await write(store(), [large])
    const changes: readonly ((stored: Uint8Array) => Uint8Array)[] = [
      bytes => bytes.subarray(0, -1), bytes => bytes.subarray(0, -4), bytes => bytes.subarray(0, 100),
      bytes => bytes.subarray(0, 2), () => new Uint8Array(0), () => stored,
      bytes => flip(bytes.length - 1)(bytes), bytes => flip(bytes.length - 5)(bytes),
    ]
    for (const spoil of changes) {
      await change(hash, spoil)
      assert.deepEqual(await given(hash), [0, 'corrupt'])
      await write(store(), [large])
      assert.deepEqual(await given(hash), [large.length, 'done'])
    }
  })
}

async function write(store: BlobStore, chunks: readonly Uint8Array[]): Promise<string> {
  const writer = await store.create()
  for (const chunk of chunks) await writer.write(chunk)
  return (await writer.finish()).hash
}

async function read(store: BlobStore, hash: string, range?: BlobRange): Promise<Uint8Array> {
  return Buffer.concat(await collect(store.open(hash, range)))
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

/** Returns `done`, or the code of the error. */
async function outcome(promise: Promise<unknown>): Promise<string> {
  try {
    await promise
    return 'done'
  } catch (error) {
    if (error instanceof BlobError) return error.code
    throw error
  }
}
