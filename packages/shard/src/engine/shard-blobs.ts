import type { AttachmentRecord, BlobReplica, CallContext, ReadBlobRequest, WrittenBlob } from '@sectional/core'
import type { NodeBlobs } from '../blobs/node-blobs.ts'
import { toReplicaError } from '../calls/call-guard.ts'
import type { ReplicaCalls } from '../calls/replica-calls.ts'

type WithAttachments = { readonly attachments?: readonly AttachmentRecord[] }

/** The blob verbs of one replica. All replicas of a node share the node's blobs. */
export class ShardBlobs implements BlobReplica {
  readonly #calls: ReplicaCalls
  readonly #blobs: NodeBlobs

  constructor(calls: ReplicaCalls, blobs: NodeBlobs) {
    this.#calls = calls
    this.#blobs = blobs
  }

  /** An error of the chunks' source is not reported as damage of this replica: the source may be another replica. */
  async writeBlob(chunks: AsyncIterable<Uint8Array>, context: CallContext): Promise<WrittenBlob> {
    try {
      this.#calls.check(context)
      return await this.#blobs.write(chunks)
    } catch (error) {
      throw this.#calls.refusal ?? toReplicaError(error)
    }
  }

  async *readBlob({ hash, span }: ReadBlobRequest, context: CallContext): AsyncGenerator<Uint8Array> {
    for await (const [chunk] of this.#calls.pages(context, () => inPages(this.#blobs.read(hash, span)))) {
      if (chunk !== undefined) yield chunk
    }
  }

  hasBlobs(hashes: readonly string[], context: CallContext): Promise<readonly boolean[]> {
    return this.#calls.read(context, () => this.#blobs.keep(hashes))
  }

  /**
   * Runs a write and protects the blobs that its items name from removal meanwhile. Items without attachments cost
   * nothing.
   */
  holding<T>(items: readonly WithAttachments[], write: () => Promise<T>): Promise<T> {
    return items.some(item => item.attachments !== undefined) ? this.#holdAndWrite(items, write) : write()
  }

  async #holdAndWrite<T>(items: readonly WithAttachments[], write: () => Promise<T>): Promise<T> {
    const release = await this.#blobs.hold(items)
    try {
      return await write()
    } finally {
      release()
    }
  }
}

async function* inPages<Item>(items: AsyncIterable<Item>): AsyncGenerator<readonly Item[]> {
  for await (const item of items) yield [item]
}
