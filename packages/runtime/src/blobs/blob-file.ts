/**
 * The format of a stored blob:
 *
 *     content, then 4 bytes for each 64 KiB of it, then 4 bytes
 *
 * The 4 bytes of a chunk are the CRC-32 of its bytes, with the chunk's number as the initial value. The last 4 bytes
 * are the CRC-32 of these checksums, with the CRC-32 of the blob's name as the initial value. Therefore damage is
 * detected before a wrong byte is returned, wherever a read begins, and no chunk or file can be taken for another one.
 */
import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { blobChunkBytes, BlobError } from './blob-store.ts'
import type { BlobRange } from './blob-store.ts'

const sumBytes = 4

/** Computes the checksums that follow the content, while the content is written. */
export class BlobSums {
  readonly #sums: number[] = []
  #sum = 0
  #filled = 0

  update(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) {
      const end = Math.min(bytes.length, at + blobChunkBytes - this.#filled)
      this.#sum = crc32(bytes.subarray(at, end), this.#sum)
      this.#filled += end - at
      at = end
      if (this.#filled === blobChunkBytes) this.#next()
    }
  }

  /** Returns the checksums. Call it once. @param hash the blob's name */
  finish(hash: string): Uint8Array {
    if (this.#filled > 0) this.#next()
    const bytes = Buffer.allocUnsafe((this.#sums.length + 1) * sumBytes)
    for (const [index, sum] of this.#sums.entries()) bytes.writeUInt32BE(sum, index * sumBytes)
    bytes.writeUInt32BE(sealOf(bytes.subarray(0, -sumBytes), hash), this.#sums.length * sumBytes)
    return bytes
  }

  #next(): void {
    this.#sums.push(this.#sum)
    this.#sum = this.#sums.length
    this.#filled = 0
  }
}

/** Returns the length of the content of a stored file; undefined when no blob has a file of this size. */
export function contentLength(storedBytes: number): number | undefined {
  const rest = (storedBytes - sumBytes) % (blobChunkBytes + sumBytes)
  if (storedBytes < sumBytes || (rest > 0 && rest <= sumBytes)) return undefined
  const chunks = Math.floor((storedBytes - sumBytes) / (blobChunkBytes + sumBytes)) + (rest > 0 ? 1 : 0)
  return storedBytes - (chunks + 1) * sumBytes
}

export function isSoundBlob(hash: string, stored: Uint8Array): boolean {
  const length = contentLength(stored.length)
  if (length === undefined) return false
  const content = stored.subarray(0, length)
  const sums = new BlobSums()
  sums.update(content)
  return createHash('sha256').update(content).digest('hex') === hash
    && Buffer.compare(sums.finish(hash), stored.subarray(length)) === 0
}

/**
 * Reads the content in chunks of at most 64 KiB. The next chunk is read ahead while the caller uses the current one.
 * @param readAt reads stored bytes from an offset; returns fewer bytes at the end of the file
 * @throws BlobError `corrupt` in place of the first damaged chunk
 */
export async function* readStored(
  hash: string, storedBytes: number, { start = 0, end = Infinity }: BlobRange,
  readAt: (offset: number, bytes: number) => Promise<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  const length = contentLength(storedBytes)
  if (length === undefined) throw damaged(hash)
  // A small blob is read in one call.
  const tailStart = length <= blobChunkBytes ? 0 : length
  const tail = await readAt(tailStart, storedBytes - tailStart)
  const sums = readSums(hash, tail.subarray(length - tailStart), Math.ceil(length / blobChunkBytes))
  const until = Math.min(end, length)
  const read = (chunk: number): Promise<Uint8Array> => {
    const offset = chunk * blobChunkBytes
    const bytes = Math.min(blobChunkBytes, length - offset)
    const reading = tailStart === 0 ? Promise.resolve(tail.subarray(0, bytes)) : readAt(offset, bytes)
    // A failure is thrown when the chunk is awaited, which may never happen.
    reading.catch(() => {})
    return reading
  }
  const first = Math.floor(Math.max(0, start) / blobChunkBytes)
  let ahead = first * blobChunkBytes < until ? read(first) : undefined
  for (let chunk = first; ahead !== undefined; chunk++) {
    const bytes = await ahead
    const offset = chunk * blobChunkBytes
    ahead = offset + blobChunkBytes < until ? read(chunk + 1) : undefined
    if (crc32(bytes, chunk) !== sums.readUInt32BE(chunk * sumBytes)) throw damaged(hash)
    const wanted = bytes.subarray(Math.max(0, start - offset), until - offset)
    if (wanted.length > 0) yield wanted
  }
}

function readSums(hash: string, bytes: Uint8Array, chunks: number): Buffer {
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  const sums = all.subarray(0, chunks * sumBytes)
  if (all.length !== (chunks + 1) * sumBytes || all.readUInt32BE(sums.length) !== sealOf(sums, hash)) {
    throw damaged(hash)
  }
  return sums
}

function sealOf(sums: Uint8Array, hash: string): number {
  return crc32(sums, crc32(hash))
}

function damaged(hash: string): BlobError {
  return new BlobError('corrupt', `the blob ${hash} is damaged: its bytes are not those that were written`)
}
