/** What every `BlobStorage` promises; each implementation runs it (under mocha). Exported as `@sectional/runtime/blob-store-suite`. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { blobChunkBytes, BlobError } from './blob-store.ts'
import type { BlobRange, BlobStorage, BlobStore } from './blob-store.ts'

export interface BlobStoreSuiteOptions {
  readonly create: () => Promise<BlobStorage>
  /** Flips a byte of a stored blob. */
  readonly damage: (storage: BlobStorage, store: string, hash: string) => Promise<void>
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

    it('gives an error in place of the end of a damaged blob', async () => {
      const hash = await write(store, [large])
      await options.damage(storage, storeName, hash)
      const seen: number[] = []
      const read = async (): Promise<void> => { for await (const chunk of store.open(hash)) seen.push(chunk.length) }
      assert.equal(await outcome(read()), 'corrupt')
      assert(seen.reduce((sum, length) => sum + length, 0) < large.length)
    })

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

  it('stores an empty blob', async () => {
    const hash = await write(store(), [])
    assert.equal(await store().length(hash), 0)
    assert.equal((await read(store(), hash)).length, 0)
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

  it('deletes, also what is not there', async () => {
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
    const cases: readonly BlobRange[] = [{ start: 10, end: 20 }, { start: blobChunkBytes - 1, end: blobChunkBytes + 1 }, { start: 5 }, { end: 5 }, { start: large.length }, { start: 0, end: 1e9 }, { start: 7, end: 7 }]
    for (const range of cases) assert.equal(Buffer.compare(await read(store(), hash, range), large.slice(range.start, range.end)), 0)
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

  it('says when a blob is missing', async () => {
    const hash = 'a'.repeat(64)
    assert.equal(await store().has(hash), false)
    assert.equal(await outcome(read(store(), hash)), 'missing')
  })

  it('refuses names that are no hash', async () => {
    assert.throws(() => store().open('../secret'), TypeError)
    await assert.rejects(store().delete('..'), TypeError)
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

/** `done`, or the code of the error. */
async function outcome(promise: Promise<unknown>): Promise<string> {
  try {
    await promise
    return 'done'
  } catch (error) {
    if (error instanceof BlobError) return error.code
    throw error
  }
}
