import { createHash } from 'node:crypto'
import { ReplicaError } from '../contracts/shard-replica.ts'
import type {
  AttachmentRecord, BlobReplica, CallContext, ReadBlobRequest, WrittenBlob,
} from '../contracts/shard-replica.ts'
import type { MemoryState } from './state-memory.ts'

const chunkBytes = 64 * 1024

/** The blobs of a `MemoryShardReplica`. They are kept forever. */
export class MemoryBlobs implements BlobReplica {
  readonly #state: MemoryState
  readonly #blobs = new Map<string, Uint8Array>()
  /** For each damaged blob, the offset of the wrong byte. */
  readonly #damaged = new Map<string, number>()

  constructor(state: MemoryState) {
    this.#state = state
  }

  async writeBlob(chunks: AsyncIterable<Uint8Array>, context: CallContext): Promise<WrittenBlob> {
    this.#state.check(context)
    const parts: Uint8Array[] = []
    for await (const chunk of chunks) parts.push(new Uint8Array(chunk))
    const blob = Buffer.concat(parts)
    const hash = createHash('sha256').update(blob).digest('hex')
    this.#blobs.set(hash, blob)
    this.#damaged.delete(hash)
    return { hash, length: blob.length }
  }

  async* readBlob({ hash, span }: ReadBlobRequest, context: CallContext): AsyncGenerator<Uint8Array> {
    this.#state.check(context)
    const blob = this.#blobs.get(hash)
    if (blob === undefined) throw new ReplicaError('missing_blob', `there is no blob ${hash}`)
    const { start, end } = span ?? { start: 0, end: blob.length }
    const damagedAt = this.#damaged.get(hash) ?? Infinity
    for (let at = start; at < Math.min(end, blob.length); at += chunkBytes) {
      if (at <= damagedAt && damagedAt < at + chunkBytes) {
        throw new ReplicaError('damaged_blob', `the blob ${hash} is damaged`)
      }
      yield blob.slice(at, Math.min(at + chunkBytes, end))
    }
  }

  async hasBlobs(hashes: readonly string[], context: CallContext): Promise<readonly boolean[]> {
    this.#state.check(context)
    return hashes.map(hash => this.#blobs.has(hash))
  }

  /** @throws ReplicaError `missing_blob` when the content of one of the items' attachments is absent */
  require(items: readonly { readonly attachments?: readonly AttachmentRecord[] }[]): void {
    for (const { attachments = [] } of items) {
      for (const { blob } of attachments) {
        if (!this.#blobs.has(blob)) throw new ReplicaError('missing_blob', `there is no blob ${blob}`)
      }
    }
  }

  /** For tests: damages the byte at `at` of a blob, or removes the blob. */
  damageBlob(hash: string, how: 'changed' | 'lost', at = 0): void {
    if (how === 'lost') this.#blobs.delete(hash)
    else this.#damaged.set(hash, at)
  }
}
