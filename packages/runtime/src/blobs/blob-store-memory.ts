import { createHash } from 'node:crypto'
import { checkStoreName } from '../files/store-name.ts'
import { BlobSums, contentLength, readStored } from './blob-file.ts'
import { BlobError, checkBlobHash } from './blob-store.ts'
import type { BlobRange, BlobStorage, BlobStore, BlobWriter } from './blob-store.ts'

/** The finished blobs of each store, as the bytes of their files. This is the part that survives a crash. */
export class MemoryBlobDisk {
  readonly #stores = new Map<string, Map<string, Uint8Array>>()

  /** @internal */
  blobs(name: string): Map<string, Uint8Array> {
    let blobs = this.#stores.get(name)
    if (blobs === undefined) this.#stores.set(name, blobs = new Map())
    return blobs
  }

  /** Returns another disk with the blobs that are finished now. */
  copy(): MemoryBlobDisk {
    const copy = new MemoryBlobDisk()
    for (const [name, blobs] of this.#stores) copy.#stores.set(name, new Map(blobs))
    return copy
  }

  /** Flips a bit of a stored byte, as failing hardware does. */
  damage(name: string, hash: string, at = 0): void {
    const damaged = new Uint8Array(this.blobs(name).get(hash)!)
    damaged[at]! ^= 1
    this.blobs(name).set(hash, damaged)
  }
}

/** The blob storage of one process on a disk; after `crash` every call fails. */
export class MemoryBlobStorage implements BlobStorage {
  readonly disk: MemoryBlobDisk
  readonly #stores = new Set<MemoryBlobStore>()
  #crashed = false

  constructor(disk: MemoryBlobDisk = new MemoryBlobDisk()) {
    this.disk = disk
  }

  async open(name: string): Promise<BlobStore> {
    checkStoreName(name)
    if (this.#crashed) throw new BlobError('closed', 'this storage was revoked')
    const store = new MemoryBlobStore(this.disk.blobs(name))
    this.#stores.add(store)
    return store
  }

  /** Simulates a crash: unfinished blobs are lost. Returns the storage of the next process. */
  crash(): MemoryBlobStorage {
    this.#crashed = true
    for (const store of this.#stores) store.revoke()
    this.#stores.clear()
    return new MemoryBlobStorage(this.disk)
  }
}

class MemoryBlobStore implements BlobStore {
  readonly #blobs: Map<string, Uint8Array>
  #closed = false

  constructor(blobs: Map<string, Uint8Array>) {
    this.#blobs = blobs
  }

  async create(): Promise<BlobWriter> {
    this.#assertOpen()
    return new MemoryBlobWriter(this.#blobs, () => this.#assertOpen())
  }

  open(hash: string, range: BlobRange = {}): AsyncIterable<Uint8Array> {
    checkBlobHash(hash)
    this.#assertOpen()
    return this.#read(hash, range)
  }

  async length(hash: string): Promise<number | undefined> {
    checkBlobHash(hash)
    this.#assertOpen()
    const stored = this.#blobs.get(hash)
    return stored && (contentLength(stored.length) ?? 0)
  }

  async has(hash: string): Promise<boolean> {
    return await this.length(hash) !== undefined
  }

  async delete(hash: string): Promise<void> {
    checkBlobHash(hash)
    this.#assertOpen()
    this.#blobs.delete(hash)
  }

  async* list(): AsyncGenerator<string, void, undefined> {
    this.#assertOpen()
    yield* [...this.#blobs.keys()].sort()
  }

  async close(): Promise<void> {
    this.revoke()
  }

  revoke(): void {
    this.#closed = true
  }

  async* #read(hash: string, range: BlobRange): AsyncGenerator<Uint8Array, void, undefined> {
    const stored = this.#blobs.get(hash)
    if (stored === undefined) throw new BlobError('missing', `there is no blob ${hash}`)
    yield* readStored(hash, stored.length, range, async (offset, bytes) => stored.slice(offset, offset + bytes))
  }

  #assertOpen(): void {
    if (this.#closed) throw new BlobError('closed', 'the blob store is closed')
  }
}

class MemoryBlobWriter implements BlobWriter {
  readonly #blobs: Map<string, Uint8Array>
  readonly #assertStoreOpen: () => void
  readonly #chunks: Uint8Array[] = []
  #ended = false

  constructor(blobs: Map<string, Uint8Array>, assertStoreOpen: () => void) {
    this.#blobs = blobs
    this.#assertStoreOpen = assertStoreOpen
  }

  async write(chunk: Uint8Array): Promise<void> {
    this.#assertOpen()
    this.#chunks.push(new Uint8Array(chunk))
  }

  async finish(
    announce?: (hash: string) => Promise<void>,
  ): Promise<{ readonly hash: string; readonly length: number }> {
    this.#assertOpen()
    this.#ended = true
    const content = Buffer.concat(this.#chunks)
    const hash = createHash('sha256').update(content).digest('hex')
    const sums = new BlobSums()
    sums.update(content)
    await announce?.(hash)
    this.#assertStoreOpen()
    this.#blobs.set(hash, new Uint8Array(Buffer.concat([content, sums.finish(hash)])))
    return { hash, length: content.length }
  }

  async abort(): Promise<void> {
    this.#ended = true
    this.#chunks.length = 0
  }

  #assertOpen(): void {
    this.#assertStoreOpen()
    if (this.#ended) throw new BlobError('closed', 'the blob was finished or aborted')
  }
}
