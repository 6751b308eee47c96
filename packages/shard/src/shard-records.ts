import type { PartitionInfo, PurgeRow, TimeSpan, TrailPoint } from '@sectional/core'
import { sealBytes, sealed } from '@sectional/runtime'
import type { Store, StoreEntry } from '@sectional/runtime'
import type { ShardKeys } from './key-layout.ts'
import { furtherChunksOf, joinBody } from './records/body-record.ts'
import type { RevisionContent } from './records/body-record.ts'
import { checkSeal, DamagedRecordError } from './records/damaged-record.ts'
import { DocumentRecord } from './records/document-record.ts'
import { decodeLocal } from './records/local-record.ts'
import type { LocalRecord } from './records/local-record.ts'
import { decodePartition, emptyPartition } from './records/partition-record.ts'
import { decodePurges } from './records/purge-records.ts'
import { decodeState, emptyState } from './records/state-record.ts'
import type { ReplicaState } from './records/state-record.ts'
import { decodeTimeSpans } from './records/time-record.ts'
import { decodeTrail } from './records/trail-record.ts'

/** The hop to the thread pool and back takes longer than so many reads. */
const readsOnTheSpotMax = 4

/** The committed records of one shard, decoded and checked. */
export class ShardRecords {
  readonly store: Store
  readonly keys: ShardKeys

  /** Whether counts and sizes of partitions are kept. */
  readonly partitioned: boolean

  constructor(store: Store, keys: ShardKeys, partitioned = false) {
    this.store = store
    this.keys = keys
    this.partitioned = partitioned
  }

  state(): ReplicaState {
    const bytes = this.store.getSync(this.keys.state())
    return bytes === undefined ? emptyState : decodeState(bytes)
  }

  document(id: string): DocumentRecord | undefined {
    const bytes = this.store.getSync(this.keys.document(id))
    return bytes === undefined ? undefined : DocumentRecord.decode(id, bytes)
  }

  async documents(ids: readonly string[]): Promise<(DocumentRecord | undefined)[]> {
    if (ids.length <= readsOnTheSpotMax) return ids.map(id => this.document(id))
    const found = await this.store.getMany(ids.map(id => this.keys.document(id)))
    return found.map((bytes, index) => bytes === undefined ? undefined : DocumentRecord.decode(ids[index]!, bytes))
  }

  /** At once where it is one record, as nearly all are. @throws DamagedRecordError when it is gone */
  body(sequence: number): RevisionContent | Promise<RevisionContent> {
    const first = this.store.getSync(this.keys.body(sequence))
    if (first === undefined) throw lostBody(sequence)
    return this.#whole(sequence, first)
  }

  async bodies(sequences: readonly number[]): Promise<RevisionContent[]> {
    if (sequences.length <= readsOnTheSpotMax) return Promise.all(sequences.map(sequence => this.body(sequence)))
    const found = await this.store.getMany(sequences.map(sequence => this.keys.body(sequence)))
    const bodies: RevisionContent[] = []
    for (let index = 0; index < sequences.length; index++) {
      const sequence = sequences[index]!
      const first = found[index]
      if (first === undefined) throw lostBody(sequence)
      const body = this.#whole(sequence, first)
      bodies.push(body instanceof Promise ? await body : body)
    }
    return bodies
  }

  /** Records of a body besides its first one. */
  bodyChunks(sequence: number): number {
    const first = this.store.getSync(this.keys.body(sequence))
    return first === undefined ? 0 : furtherChunksOf(sequence, first)
  }

  localDocument(id: string): LocalRecord | undefined {
    const bytes = this.store.getSync(this.keys.localDocument(id))
    return bytes === undefined ? undefined : decodeLocal(id, bytes)
  }

  /** What was recorded of another replica's changes, or 0. */
  checkpoint(history: string): number {
    return decodeCheckpoint(this.store.getSync(this.keys.checkpoint(history)))
  }

  /** Where the own changes stand in the log of another replica. */
  trail(history: string): readonly TrailPoint[] {
    const bytes = this.store.getSync(this.keys.trail(history))
    return bytes === undefined ? [] : decodeTrail(bytes)
  }

  /** Recorded purges of a document, oldest first. */
  purges(id: string): readonly PurgeRow[] {
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

  #whole(sequence: number, first: Uint8Array): RevisionContent | Promise<RevisionContent> {
    const chunks = furtherChunksOf(sequence, first)
    if (chunks === 0) return joinBody(sequence, first, [])
    const keys = Array.from({ length: chunks }, (_, index) => this.keys.body(sequence, index + 1))
    return this.store.getMany(keys).then(further => joinBody(sequence, first, further))
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

function lostBody(sequence: number): DamagedRecordError {
  return new DamagedRecordError(`the body at sequence ${sequence} is missing`)
}
