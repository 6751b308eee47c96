import { createHash } from 'node:crypto'
import { mkdir, open as openFile, readdir, rename, rm, stat } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { syncDirectory } from '../files/sync-directory.ts'
import { checkStoreName } from '../files/store-name.ts'
import { BlobSums, contentLength, readStored } from './blob-file.ts'
import { BlobError, checkBlobHash, isBlobHash } from './blob-store.ts'
import type { BlobRange, BlobStorage, BlobStore, BlobWriter } from './blob-store.ts'

/** The folder of unfinished blobs; no hash begins with this name. */
const incomingFolder = 'incoming'
/** Chunks are written together, because each write costs a crossing to the thread pool. */
const writtenAtOnceBytes = 256 * 1024
const writtenAtOnceChunks = 64

/**
 * Each store is a folder below the directory. Blobs are files `{first two digits of the hash}/{hash}` in the format
 * that `blob-file` describes.
 */
export class FileBlobStorage implements BlobStorage {
  readonly #directory: string

  constructor(directory: string) {
    this.#directory = directory
  }

  async open(name: string): Promise<BlobStore> {
    checkStoreName(name)
    const root = join(this.#directory, name)
    return await mapped(async () => {
      await rm(join(root, incomingFolder), { recursive: true, force: true })
      await mkdir(join(root, incomingFolder), { recursive: true })
      await syncDirectory(this.#directory)
      await syncDirectory(root)
      return new FileBlobStore(root)
    })
  }
}

class FileBlobStore implements BlobStore {
  readonly #root: string
  readonly #writers = new Set<FileBlobWriter>()
  #created = 0
  #closed = false

  constructor(root: string) {
    this.#root = root
  }

  async create(): Promise<BlobWriter> {
    this.#assertOpen()
    const path = join(this.#root, incomingFolder, String(this.#created++))
    const file = await mapped(() => openFile(path, 'wx'))
    const writer: FileBlobWriter = new FileBlobWriter(this.#root, path, file, () => this.#writers.delete(writer))
    this.#writers.add(writer)
    return writer
  }

  open(hash: string, range: BlobRange = {}): AsyncIterable<Uint8Array> {
    checkBlobHash(hash)
    this.#assertOpen()
    return readBlob(this.#path(hash), hash, range)
  }

  async length(hash: string): Promise<number | undefined> {
    checkBlobHash(hash)
    this.#assertOpen()
    try {
      return contentLength((await stat(this.#path(hash))).size) ?? 0
    } catch (error) {
      if (isMissing(error)) return undefined
      throw toBlobError(error)
    }
  }

  async has(hash: string): Promise<boolean> {
    return await this.length(hash) !== undefined
  }

  async delete(hash: string): Promise<void> {
    checkBlobHash(hash)
    this.#assertOpen()
    await mapped(() => rm(this.#path(hash), { force: true }))
  }

  async* list(): AsyncGenerator<string, void, undefined> {
    this.#assertOpen()
    // Skip what other programs have put here.
    const folders = (await mapped(() => readdir(this.#root))).filter(name => /^[0-9a-f]{2}$/.test(name))
    for (const folder of folders.sort()) {
      const names = await mapped(() => readdir(join(this.#root, folder)).catch(ifNoFolder))
      yield* names.filter(name => isBlobHash(name) && name.startsWith(folder)).sort()
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    for (const writer of [...this.#writers]) await writer.abort()
  }

  #path(hash: string): string {
    return join(this.#root, hash.slice(0, 2), hash)
  }

  #assertOpen(): void {
    if (this.#closed) throw new BlobError('closed', 'the blob store is closed')
  }
}

/** Returns the chunks without their first `bytes` bytes. */
function behind(chunks: Uint8Array[], bytes: number): Uint8Array[] {
  let left = bytes
  for (const [index, chunk] of chunks.entries()) {
    if (chunk.length > left) return [chunk.subarray(left), ...chunks.slice(index + 1)]
    left -= chunk.length
  }
  return []
}

class FileBlobWriter implements BlobWriter {
  readonly #root: string
  readonly #path: string
  readonly #file: FileHandle
  readonly #onEnd: () => void
  readonly #digest = createHash('sha256')
  readonly #sums = new BlobSums()
  #length = 0
  #ended = false
  /** True while bytes that the hash includes may be missing in the file. */
  #broken = false
  #waiting: Uint8Array[] = []
  #waitingBytes = 0
  /** The write in progress; the next one is collected meanwhile. */
  #writing: Promise<void> = Promise.resolve()

  constructor(root: string, path: string, file: FileHandle, onEnd: () => void) {
    this.#root = root
    this.#path = path
    this.#file = file
    this.#onEnd = onEnd
  }

  async write(chunk: Uint8Array): Promise<void> {
    this.#assertOpen()
    this.#broken = true
    this.#digest.update(chunk)
    this.#sums.update(chunk)
    this.#length += chunk.length
    this.#waiting.push(chunk)
    this.#waitingBytes += chunk.length
    if (this.#waitingBytes >= writtenAtOnceBytes || this.#waiting.length >= writtenAtOnceChunks) {
      await this.#writeWaiting()
    }
    this.#broken = false
  }

  async finish(
    announce?: (hash: string) => Promise<void>,
  ): Promise<{ readonly hash: string; readonly length: number }> {
    this.#assertOpen()
    const hash = this.#digest.digest('hex')
    const folder = join(this.#root, hash.slice(0, 2))
    this.#waiting.push(this.#sums.finish(hash))
    await this.#writeWaiting()
    await this.#writing
    await mapped(() => this.#file.sync())
    await announce?.(hash)
    await mapped(async () => {
      const created = await mkdir(folder, { recursive: true })
      await rename(this.#path, join(folder, hash))
      await syncDirectory(folder)
      if (created !== undefined) await syncDirectory(this.#root)
      await this.#end()
    })
    return { hash, length: this.#length }
  }

  async abort(): Promise<void> {
    if (this.#ended) return
    await mapped(async () => {
      await this.#end()
      await rm(this.#path, { force: true })
    })
  }

  /** Resolves when the waiting chunks are being written and all earlier ones are written. */
  async #writeWaiting(): Promise<void> {
    await this.#writing
    const chunks = this.#waiting
    this.#waiting = []
    this.#waitingBytes = 0
    this.#writing = mapped(() => this.#writeAll(chunks))
    // The next call of the writer reports the failure.
    this.#writing.catch(() => {})
  }

  async #writeAll(chunks: Uint8Array[]): Promise<void> {
    for (let rest = chunks; rest.length > 0;) rest = behind(rest, (await this.#file.writev(rest)).bytesWritten)
  }

  async #end(): Promise<void> {
    this.#ended = true
    this.#onEnd()
    await this.#file.close()
  }

  #assertOpen(): void {
    if (this.#ended) throw new BlobError('closed', 'the blob was finished or aborted')
    if (this.#broken) throw new BlobError('io', 'an earlier write has failed or is still running')
  }
}

async function* readBlob(path: string, hash: string, range: BlobRange): AsyncGenerator<Uint8Array, void, undefined> {
  const file = await mapped(() => openFile(path, 'r'), hash)
  try {
    const { size } = await mapped(() => file.stat())
    yield* readStored(hash, size, range, (offset, bytes) => mapped(async () => {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(bytes), 0, bytes, offset)
      return buffer.subarray(0, bytesRead)
    }))
  } finally {
    await file.close()
  }
}

async function mapped<T>(run: () => Promise<T>, hash = ''): Promise<T> {
  try {
    return await run()
  } catch (error) {
    throw isMissing(error) && hash !== ''
      ? new BlobError('missing', `there is no blob ${hash}`, { cause: error })
      : toBlobError(error)
  }
}

function ifNoFolder(error: NodeJS.ErrnoException): string[] {
  if (error.code !== 'ENOTDIR') throw error
  return []
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT'
}

function toBlobError(error: unknown): BlobError {
  if (error instanceof BlobError) return error
  const { code, message } = error as NodeJS.ErrnoException
  return new BlobError(code === 'ENOSPC' || code === 'EDQUOT' ? 'full' : 'io', message, { cause: error })
}
