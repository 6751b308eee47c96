import { PageBudget } from '@sectional/core'
import type { PartitionInfo, TimeSpan, TrailPoint } from '@sectional/core'
import { sealBytes, sealed } from '@sectional/runtime'
import type { Store, StoreEntry } from '@sectional/runtime'
import type { KeptDocuments } from './kept-documents.ts'
import { KnownAttempts } from './known-attempts.ts'
import { ShardKeys } from '../records/key-layout.ts'
import { furtherChunksOf, joinBody } from '../records/body-record.ts'
import type { RevisionContent } from '../records/body-record.ts'
import { checkSeal, DamagedRecordError } from '../records/damaged-record.ts'
import { DocumentRecord } from '../records/document-record.ts'
import { decodeLocal } from '../records/local-record.ts'
import type { LocalRecord } from '../records/local-record.ts'
import { decodePartition, emptyPartition } from '../records/partition-record.ts'
import { decodePurges } from '../records/purge-records.ts'
import type { StoredPurge } from '../records/purge-records.ts'
import { decodeState, emptyState } from '../records/state-record.ts'
import type { ReplicaState } from '../records/state-record.ts'
import { decodeTimeSpans } from '../records/time-record.ts'
import { decodeTrail } from '../records/trail-record.ts'

/** Up to this many reads take less time on the calling thread than a call to the thread pool. */
const readsOnTheSpotMax = 4
/** At least this many bodies are read as a range, when the range has at most `rangeSpan` sequences for each body. */
const rangeBodiesMin = 32
const rangeSpan = 2

/** Bytes of bodies of a page of a scan, and of the pages of all scans of a node. */
const scanPageBytes = 256 * 1024
const scanPagesBytes = 64 * 1024 * 1024

/** Limits the pages of the scans of documents and changes of a node. */
export function newScanPages(): PageBudget {
  return new PageBudget({ pageRows: Infinity, pageBytes: scanPageBytes }, scanPagesBytes)
}

/** Reads the committed records of one shard, and checks and decodes them. */
export class ShardRecords {
  readonly store: Store
  readonly keys: ShardKeys

  /** Whether the shard has records of the counts and sizes of partitions. */
  readonly partitioned: boolean
  /** The cache of documents; undefined: the store is always read. */
  readonly kept: KeptDocuments | undefined
  readonly attempts: KnownAttempts
  /** Limits the pages of scans. */
  readonly pages: PageBudget

  constructor(
    store: Store, keys: ShardKeys, partitioned = false, kept?: KeptDocuments, attempts = new KnownAttempts(),
    pages = newScanPages(),
  ) {
    this.store = store
    this.keys = keys
    this.partitioned = partitioned
    this.kept = kept
    this.attempts = attempts
    this.pages = pages
  }

  state(): ReplicaState {
    const bytes = this.store.getSync(this.keys.state())
    return bytes === undefined ? emptyState : decodeState(bytes)
  }

  document(id: string): DocumentRecord | undefined {
    const kept = this.kept?.get(id)
    if (kept !== undefined) return kept
    const reading = this.kept?.reading()
    const bytes = this.store.getSync(this.keys.document(id))
    if (bytes === undefined) return undefined
    const record = DocumentRecord.decode(id, bytes)
    this.kept?.keep(id, bytes, reading)
    return record
  }

  /** Reads the records of documents, in order. A repeated id is read once, because a record may have megabytes. */
  async documents(ids: readonly string[]): Promise<(DocumentRecord | undefined)[]> {
    const distinct = new Set(ids)
    if (distinct.size === ids.length) return this.#documents(ids)
    const records = await this.#documents([...distinct])
    const byId = new Map([...distinct].map((id, index) => [id, records[index]]))
    return ids.map(id => byId.get(id))
  }

  async #documents(ids: readonly string[]): Promise<(DocumentRecord | undefined)[]> {
    if (ids.length <= readsOnTheSpotMax) return ids.map(id => this.document(id))
    const records = ids.map(id => this.kept?.get(id))
    const reading = this.kept?.reading()
    const unknown: number[] = []
    for (const [index, record] of records.entries()) if (record === undefined) unknown.push(index)
    const found = await this.store.getMany(unknown.map(index => this.keys.document(ids[index]!)))
    for (const [at, index] of unknown.entries()) {
      const id = ids[index]!
      const bytes = found[at]
      if (bytes === undefined) continue
      records[index] = DocumentRecord.decode(id, bytes)
      this.kept?.keep(id, bytes, reading)
    }
    return records
  }

  /**
   * Reads a body. A body of one record, as nearly all are, is returned without a promise.
   *
   * @returns undefined when the body does not exist (any more); then call `assertGone`
   */
  body(sequence: number): RevisionContent | undefined | Promise<RevisionContent | undefined> {
    const first = this.store.getSync(this.keys.body(sequence))
    return first === undefined ? undefined : this.#whole(sequence, first)
  }

  /** Reads several bodies. @returns undefined for a body that does not exist (any more); then call `assertGone` */
  async bodies(sequences: readonly number[]): Promise<(RevisionContent | undefined)[]> {
    if (sequences.length <= readsOnTheSpotMax) return Promise.all(sequences.map(sequence => this.body(sequence)))
    const found = await this.#firstChunks(sequences)
    const bodies: (RevisionContent | undefined)[] = []
    for (let index = 0; index < sequences.length; index++) {
      const first = found[index]
      const body = first === undefined ? undefined : this.#whole(sequences[index]!, first)
      bodies.push(body instanceof Promise ? await body : body)
    }
    return bodies
  }

  /**
   * Reads the first records of bodies. Those of a first scan of the changes lie together in the store, and an iterator
   * reads neighbours at less than half the cost of single reads.
   */
  async #firstChunks(sequences: readonly number[]): Promise<readonly (Uint8Array | undefined)[]> {
    const first = Math.min(...sequences)
    const last = Math.max(...sequences)
    if (sequences.length < rangeBodiesMin || last - first >= rangeSpan * sequences.length) {
      return await this.store.getMany(sequences.map(sequence => this.keys.body(sequence)))
    }
    const found = new Map<number, Uint8Array>()
    const iterator = this.store.iterate(this.keys.bodies(first, last))
    try {
      // Asking for one entry more than expected shows the end of the range to the iterator without a further call.
      const count = last - first + 2
      for (let page = await iterator.next(count); page.length > 0; page = await iterator.next(count)) {
        for (const [key, value] of page) if (ShardKeys.bodyChunk(key) === 0) found.set(ShardKeys.sequence(key), value)
      }
    } finally {
      await iterator.close()
    }
    return sequences.map(sequence => found.get(sequence))
  }

  /**
   * Checks why a body is absent. It may have been removed since its document was read: LevelDB may write a batch
   * between any two reads, and purges, compactions and a short `_revs_limit` remove bodies.
   *
   * @throws DamagedRecordError when the document still refers to the body
   */
  assertGone(id: string, sequence: number): void {
    this.kept?.forget(id)
    if (this.document(id)?.tree.nodes().some(({ bodyKey }) => bodyKey === sequence)) {
      throw new DamagedRecordError(`the body of document ${id} at sequence ${sequence} is missing`)
    }
  }

  /** Returns the number of records of a body besides its first one. */
  bodyChunks(sequence: number): number {
    const first = this.store.getSync(this.keys.body(sequence))
    return first === undefined ? 0 : furtherChunksOf(sequence, first)
  }

  localDocument(id: string): LocalRecord | undefined {
    const bytes = this.store.getSync(this.keys.localDocument(id))
    return bytes === undefined ? undefined : decodeLocal(id, bytes)
  }

  /** Returns the sequence up to which the changes of another replica have been stored, or 0. */
  checkpoint(history: string): number {
    return decodeCheckpoint(this.store.getSync(this.keys.checkpoint(history)))
  }

  /** Returns the trail of the replica's own changes in another replica's changes. */
  trail(history: string): readonly TrailPoint[] {
    const bytes = this.store.getSync(this.keys.trail(history))
    return bytes === undefined ? [] : decodeTrail(bytes)
  }

  /** Returns the recorded purges of a document, oldest first. */
  purges(id: string): readonly StoredPurge[] {
    const bytes = this.store.getSync(this.keys.purgesOf(id))
    return bytes === undefined ? [] : decodePurges(id, bytes)
  }

  purgeCheckpoint(history: string): number {
    return decodeCheckpoint(this.store.getSync(this.keys.purgeCheckpoint(history)))
  }

  timeSpans(): readonly TimeSpan[] {
    const bytes = this.store.getSync(this.keys.timeSpans())
    return bytes === undefined ? [] : decodeTimeSpans(bytes)
  }

  partition(partition: string): PartitionInfo {
    const bytes = this.store.getSync(this.keys.partition(partition))
    return bytes === undefined ? emptyPartition : decodePartition(partition, bytes)
  }

  #whole(sequence: number, first: Uint8Array): RevisionContent | Promise<RevisionContent | undefined> {
    const chunks = furtherChunksOf(sequence, first)
    return chunks === 0 ? joinBody(sequence, first, []) : this.#joined(sequence, first, chunks)
  }

  async #joined(sequence: number, first: Uint8Array, chunks: number): Promise<RevisionContent | undefined> {
    const further = await this.store.getMany(
      Array.from({ length: chunks }, (_, index) => this.keys.body(sequence, index + 1)),
    )
    if (further.includes(undefined) && this.store.getSync(this.keys.body(sequence)) === undefined) return undefined
    return joinBody(sequence, first, further)
  }
}

export function encodeCheckpoint(sequence: number): Uint8Array {
  return sealed(Buffer.from(String(sequence)))
}

export function decodeCheckpoint(bytes: StoreEntry[1] | undefined): number {
  if (bytes === undefined) return 0
  checkSeal(bytes, 'a checkpoint')
  return Number(Buffer.from(bytes).toString('latin1', sealBytes))
}
