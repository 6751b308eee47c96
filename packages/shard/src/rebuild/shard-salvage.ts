import { purgesOf, ReplicaError, revisionOf } from '@sectional/core'
import type { CallContext, DocumentRevision, LocalDocument, Purge, PurgeRow, ShardReplica } from '@sectional/core'
import { ShardKeys } from '../records/key-layout.ts'
import type { KeyKind } from '../records/key-layout.ts'
import type { RevisionContent } from '../records/body-record.ts'
import { DamagedRecordError } from '../records/damaged-record.ts'
import { DocumentRecord } from '../records/document-record.ts'
import { decodeLocal } from '../records/local-record.ts'
import { decodePurges } from '../records/purge-records.ts'
import { isMisplaced } from '../scrub/record-links.ts'
import type { ShardRecords } from '../reading/shard-records.ts'
import { scanEntries } from '../records/entry-scan.ts'

/** Limits of one durable batch. */
const batchDocumentsMax = 64
const batchBytesMax = 1024 * 1024
/** Copied trees were already stemmed, so no limit applies again. */
const revsLimit = Number.MAX_SAFE_INTEGER
const call: CallContext = { timeoutMs: 60_000, requestId: 'rebuild' }

export interface SalvageReport {
  /** The number of documents and local documents that were copied completely or in part. */
  readonly documents: number
  /** The number of records that could not be read, and of revisions whose body or attachment could not be read. */
  readonly damaged: number
}

/**
 * Copies everything of a replica whose checksums hold into an empty one: purges, leaves with their ancestors, and local
 * documents. The target computes its own counters, changes log and checkpoints. Therefore the result is consistent
 * whatever was damaged, and lacks at most the content of the damaged records.
 *
 * @throws StorageError, ReplicaError when a disk fails or `stopped` aborts; the target must then be discarded
 */
export async function salvageShard(
  from: ShardRecords, target: ShardReplica, stopped: AbortSignal,
): Promise<SalvageReport> {
  const salvage = new ShardSalvage(from, target, stopped)
  await salvage.copyPurges()
  await salvage.copyDocuments()
  await salvage.copyLocals()
  return salvage.report
}

class ShardSalvage {
  readonly #from: ShardRecords
  readonly #target: ShardReplica
  readonly #stopped: AbortSignal
  readonly #purges = new Map<string, readonly PurgeRow[]>()
  #documents = 0
  #damaged = 0

  constructor(from: ShardRecords, target: ShardReplica, stopped: AbortSignal) {
    this.#from = from
    this.#target = target
    this.#stopped = stopped
  }

  get report(): SalvageReport {
    return { documents: this.#documents, damaged: this.#damaged }
  }

  async copyPurges(): Promise<void> {
    for await (const page of this.#pages('q')) {
      const purges: Purge[] = []
      for (const [key, value] of page) {
        const id = ShardKeys.text(key)
        const rows = this.#readable(() => decodePurges(id, value)) ?? []
        if (rows.length > 0) this.#purges.set(id, rows)
        purges.push(...rows.map(({ uuid, paths }) => ({ uuid, id, paths })))
      }
      if (purges.length > 0) await this.#target.purgeDocuments({ purges }, call)
    }
  }

  async copyDocuments(): Promise<void> {
    let batch: DocumentRevision[] = []
    let bytes = 0
    for await (const page of this.#pages('i')) {
      for (const [key, value] of page) {
        const revisions = await this.#leaves(ShardKeys.text(key), value)
        if (revisions.length > 0) this.#documents++
        batch.push(...revisions)
        bytes += revisions.reduce((sum, revision) => sum + revision.body.length, 0)
        if (batch.length < batchDocumentsMax && bytes < batchBytesMax) continue
        await this.#store(batch)
        batch = []
        bytes = 0
      }
    }
    await this.#store(batch)
  }

  async copyLocals(): Promise<void> {
    for await (const page of this.#pages('l')) {
      const locals = page.flatMap(([key, value]): LocalDocument[] => {
        const local = this.#readable(() => this.#placed(ShardKeys.text(key), decodeLocal(ShardKeys.text(key), value)))
        return local === undefined ? [] : [local]
      })
      this.#documents += locals.length
      for (let at = 0; at < locals.length; at += batchDocumentsMax) {
        await this.#target.storeRevisions(
          { revisions: [], locals: locals.slice(at, at + batchDocumentsMax), revsLimit }, call,
        )
      }
    }
  }

  async #leaves(id: string, value: Uint8Array): Promise<DocumentRevision[]> {
    const record = this.#readable(() => this.#placed(id, DocumentRecord.decode(id, value)))
    const found: DocumentRevision[] = []
    for (const node of record?.tree.leafNodes() ?? []) {
      const revision = revisionOf(node)
      const path = record!.tree.path(revision)!
      const attempt = record!.leaves.find(leaf => leaf.revision === revision)?.attempt
      const content = await this.#body(node.bodyKey)
      const purges = purgesOf(this.#purges.get(id) ?? [], revision)
      if (content !== undefined) {
        found.push({
          id, path, deleted: node.deleted, ...content, ...(purges.length > 0 && { purges }),
          ...(attempt !== undefined && { attempt }),
        })
      }
    }
    return found
  }

  /**
   * Rejects a record under a damaged key, which would create a document with an id that no client wrote. @throws
   * DamagedRecordError
   */
  #placed<Record extends { readonly sequence: number }>(id: string, record: Record): Record {
    if (isMisplaced(this.#from, id, record.sequence)) throw new DamagedRecordError(`${id} was written under another id`)
    return record
  }

  async #body(sequence: number | null): Promise<RevisionContent | undefined> {
    try {
      if (sequence !== null) return await this.#from.body(sequence)
    } catch (error) {
      if (!(error instanceof DamagedRecordError)) throw error
    }
    this.#damaged++
    return undefined
  }

  /** Stores revisions; stores them one by one when the attachment content of some of them is missing. */
  async #store(revisions: readonly DocumentRevision[]): Promise<void> {
    if (revisions.length === 0) return
    try {
      await this.#target.storeRevisions({ revisions, revsLimit }, call)
    } catch (error) {
      if (!(error instanceof ReplicaError) || error.code !== 'missing_blob') throw error
      if (revisions.length === 1) this.#damaged++
      else for (const revision of revisions) await this.#store([revision])
    }
  }

  #readable<T>(decode: () => T): T | undefined {
    try {
      return decode()
    } catch (error) {
      if (!(error instanceof DamagedRecordError)) throw error
      this.#damaged++
      return undefined
    }
  }

  async* #pages(kind: KeyKind): ReturnType<typeof scanEntries> {
    for await (const page of scanEntries(this.#from.store, this.#from.keys.kind(kind))) {
      if (this.#stopped.aborted) throw new ReplicaError('closed', 'the node is shutting down')
      yield page
    }
  }
}
