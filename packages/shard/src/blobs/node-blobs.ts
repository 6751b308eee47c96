import { ReplicaError } from '@sectional/core'
import type { AttachmentRecord, BlobSpan, WrittenBlob } from '@sectional/core'
import { BlobError } from '@sectional/runtime'
import type { BlobStore, Clock, Log, Metrics, Store } from '@sectional/runtime'
import { blobKeys } from '../records/key-layout.ts'
import type { BlobReference } from '../records/key-layout.ts'
import { scanEntries } from '../records/entry-scan.ts'
import { BlobLeases } from './blob-leases.ts'
import { BlobSweep } from './blob-sweep.ts'

export interface NodeBlobsParts {
  readonly blobs: BlobStore
  /** The store that holds the references. */
  readonly store: Store
  /** Returns false while references that were written may be missing; no content is removed then. */
  readonly complete: () => boolean
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
}

/**
 * The content of attachments on one node. Each blob is stored once, however many documents and shards name it
 * (docs/decisions/0007-attachment-content.md).
 */
export class NodeBlobs {
  readonly #parts: NodeBlobsParts
  readonly #leases: BlobLeases
  readonly #sweep: BlobSweep
  readonly #writes = new Set<Promise<unknown>>()
  /** Called with the hash of a blob when a read found it damaged. */
  onDamage: (hash: string) => void = () => {}
  readonly #written
  readonly #damaged

  constructor(parts: NodeBlobsParts) {
    const { metrics } = parts
    this.#parts = parts
    this.#leases = new BlobLeases(parts.clock)
    this.#sweep = new BlobSweep({ ...parts, leases: this.#leases })
    this.#written = metrics.counter('sectional_blob_written_bytes_total', 'Bytes of attachments written to this node.')
    this.#damaged = metrics.counter(
      'sectional_blob_damaged_total', 'Reads that found content that is not what was written.',
    )
  }

  /** Starts the regular sweeps. */
  start(): void {
    this.#sweep.start()
  }

  /** Schedules a sweep. Call this after bodies were dropped, because no body may name their attachments any more. */
  collectSoon(): void {
    this.#sweep.soon()
  }

  /** Removes blobs that no body names (see `BlobSweep`). Resolves with the number of removed blobs. */
  collect(): Promise<number> {
    return this.#sweep.run()
  }

  write(chunks: AsyncIterable<Uint8Array>): Promise<WrittenBlob> {
    const writing = this.#write(chunks)
    this.#writes.add(writing)
    const forget = (): void => { this.#writes.delete(writing) }
    writing.then(forget, forget)
    return writing
  }

  async #write(chunks: AsyncIterable<Uint8Array>): Promise<WrittenBlob> {
    const writer = await mapped(() => this.#parts.blobs.create())
    try {
      for await (const chunk of chunks) await mapped(() => writer.write(chunk))
      const written = await mapped(() => writer.finish(hash => this.#leases.grant(hash)))
      this.#written.add(written.length)
      return written
    } catch (error) {
      await writer.abort().catch((failure: unknown) => {
        this.#parts.log.warn(
          { error: String(failure) }, 'an unfinished blob could not be removed; the next start removes it',
        )
      })
      throw error
    }
  }

  async* read(hash: string, span: BlobSpan | null): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      yield* this.#parts.blobs.open(checked(hash), span ?? {})
    } catch (error) {
      if (error instanceof BlobError && error.code === 'corrupt') {
        this.#damaged.add()
        this.onDamage(hash)
        this.#parts.log.error(
          { blob: hash },
          'the content of an attachment on this disk is damaged; it is repaired from another replica, if there is one',
        )
      }
      throw toReplicaError(error)
    }
  }

  /**
   * Reads every blob and compares it with its hash, also behind a blob that cannot be read.
   * @param rest called after each chunk; an error that it throws ends the reading
   * @throws ReplicaError for the first blob that could not be read
   */
  async scrub(rest: () => Promise<void>): Promise<void> {
    let unreadable: ReplicaError | undefined
    try {
      for await (const hash of this.#parts.blobs.list()) {
        try {
          for await (const _ of this.read(hash, null)) await rest()
        } catch (error) {
          if (!(error instanceof ReplicaError) || error.code === 'closed') throw error
          if (error.code === 'storage') unreadable ??= error
        }
      }
    } catch (error) {
      throw toReplicaError(error)
    }
    if (unreadable !== undefined) throw unreadable
  }

  /** Returns where the bodies lie that name a blob. */
  async references(hash: string): Promise<BlobReference[]> {
    const found: BlobReference[] = []
    for await (const page of scanEntries(this.#parts.store, blobKeys.references(hash), { values: false })) {
      for (const [key] of page) found.push(blobKeys.readReference(key))
    }
    return found
  }

  /** Returns which blobs exist, and leases those. */
  async keep(hashes: readonly string[]): Promise<boolean[]> {
    const found: boolean[] = []
    for (const hash of hashes) {
      // Grant the lease before the lookup, so that the blob cannot be removed in between.
      await this.#leases.grant(checked(hash))
      found.push(await mapped(() => this.#parts.blobs.has(hash)))
    }
    return found
  }

  /**
   * Holds the blobs that revisions name until their records are durable.
   * @returns a function that releases the blobs
   * @throws ReplicaError `missing_blob`
   */
  async hold(items: readonly { readonly attachments?: readonly AttachmentRecord[] }[]): Promise<() => void> {
    const hashes = new Set(items.flatMap(({ attachments = [] }) => attachments.map(({ blob }) => checked(blob))))
    const held: string[] = []
    const release = (): void => { for (const hash of held.splice(0)) this.#leases.release(hash) }
    try {
      for (const hash of hashes) {
        await this.#leases.hold(hash)
        held.push(hash)
        if (!await mapped(() => this.#parts.blobs.has(hash))) {
          throw new ReplicaError('missing_blob', `this node has no blob ${hash}`)
        }
      }
      return release
    } catch (error) {
      release()
      throw error
    }
  }

  /** Aborts unfinished writes of blobs and closes the blob store. */
  async close(): Promise<void> {
    await this.#sweep.stop()
    await this.#parts.blobs.close()
    await Promise.allSettled(this.#writes)
  }
}

function checked(hash: string): string {
  if (!/^[0-9a-f]{64}$/.test(hash)) throw new ReplicaError('protocol', 'a blob is named by 64 lower-case hex digits')
  return hash
}

async function mapped<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw toReplicaError(error)
  }
}

function toReplicaError(error: unknown): unknown {
  if (!(error instanceof BlobError)) return error
  switch (error.code) {
    case 'missing': return new ReplicaError('missing_blob', error.message, { cause: error })
    case 'corrupt': return new ReplicaError('damaged_blob', error.message, { cause: error })
    case 'closed': return new ReplicaError('closed', error.message, { cause: error })
    default: return new ReplicaError('storage', error.message, { cause: error })
  }
}
