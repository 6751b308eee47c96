import type { PartitionInfo, TrailPoint } from '@sectional/core'
import type { DocumentRecord } from '../records/document-record.ts'
import type { LocalRecord } from '../records/local-record.ts'
import type { StoredPurge } from '../records/purge-records.ts'
import type { FilledDraft, PurgedDocument } from './write-draft.ts'

/** The records that batches in flight of one shard will have written once they are durable. */
export class StagedRecords {
  readonly documents = new Map<string, DocumentRecord | PurgedDocument>()
  readonly locals = new Map<string, LocalRecord>()
  readonly checkpoints = new Map<string, number>()
  readonly trails = new Map<string, readonly TrailPoint[]>()
  /** Sequence of a body that takes several records -> the number of its records after the first. */
  readonly largeBodies = new Map<number, number>()
  readonly purges = new Map<string, readonly StoredPurge[]>()
  readonly purgeCheckpoints = new Map<string, number>()
  readonly partitions = new Map<string, PartitionInfo>()

  add(filled: FilledDraft): void {
    this.#each(filled, (records, key, value) => records.set(key, value))
  }

  /** Call this after the batch is durable. Records that a later batch has replaced stay. */
  landed(filled: FilledDraft): void {
    this.#each(filled, (records, key, value) => { if (records.get(key) === value) records.delete(key) })
  }

  clear(): void {
    for (const records of [
      this.documents, this.locals, this.checkpoints, this.trails, this.largeBodies, this.purges, this.purgeCheckpoints,
      this.partitions,
    ]) {
      records.clear()
    }
  }

  #each(filled: FilledDraft, visit: <Key, Value>(records: Map<Key, Value>, key: Key, value: Value) => void): void {
    for (const [id, record] of filled.documents) visit(this.documents, id, record)
    for (const record of filled.locals) visit(this.locals, record.id, record)
    for (const [sequence, chunks] of filled.largeBodies) visit(this.largeBodies, sequence, chunks)
    for (const [id, purges] of filled.purges) visit(this.purges, id, purges)
    for (const [partition, info] of filled.partitions) visit(this.partitions, partition, info)
    const { checkpoint, trail, purgeCheckpoint } = filled
    if (checkpoint !== undefined) visit(this.checkpoints, checkpoint.history, checkpoint.sequence)
    if (trail !== undefined) visit(this.trails, trail.history, trail.points)
    if (purgeCheckpoint !== undefined) visit(this.purgeCheckpoints, purgeCheckpoint.history, purgeCheckpoint.sequence)
  }
}
