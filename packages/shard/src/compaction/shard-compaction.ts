import type { Clock } from '@sectional/runtime'
import { ShardKeys } from '../records/key-layout.ts'
import { DocumentRecord } from '../records/document-record.ts'
import type { ShardRecords } from '../reading/shard-records.ts'
import type { ShardWriter } from '../writing/shard-writer.ts'
import { scanEntries } from '../records/entry-scan.ts'
import type { CompactionOptions } from './compaction-options.ts'

/** The progress of a compaction, as `_active_tasks` shows it. Times are milliseconds since 1970. */
export interface CompactionProgress {
  readonly phase: 'document_copy' | 'disk'
  readonly startedOn: number
  readonly updatedOn: number
  readonly changesDone: number
  readonly totalChanges: number
}

export interface CompactedShard {
  readonly records: ShardRecords
  readonly writer: ShardWriter
}

/**
 * Drops the bodies of replaced revisions, one page of documents at a time, and then makes the store reclaim their
 * space. Documents are not copied: LevelDB rewrites its files of a few MB one by one, so the disk needs no room for a
 * second copy. Each batch is complete in itself; after a crash or a stop, the next compaction does the rest.
 */
export class ShardCompaction {
  readonly #shard: CompactedShard
  readonly #clock: Clock
  readonly #options: CompactionOptions
  readonly #stopped: AbortSignal
  #progress: CompactionProgress

  constructor(shard: CompactedShard, clock: Clock, options: CompactionOptions, stopped: AbortSignal) {
    this.#shard = shard
    this.#clock = clock
    this.#options = options
    this.#stopped = stopped
    const { documentCount, deletedCount } = shard.writer.committed()
    const now = clock.now()
    this.#progress = {
      phase: 'document_copy', startedOn: now, updatedOn: now, changesDone: 0,
      totalChanges: documentCount + deletedCount,
    }
  }

  get progress(): CompactionProgress {
    return this.#progress
  }

  /** @throws ReplicaError when the shard is dropped; StorageError when the disk fails or the node stops */
  async run(): Promise<void> {
    const { records, writer } = this.#shard
    const { replacedBytes } = writer.committed()
    let last: string | undefined
    let rewritten = 0
    for (;;) {
      const startedAt = this.#clock.monotonic()
      const page = await this.#nextPage(last)
      if (page.ids.length === 0) break
      last = page.ids.at(-1)
      rewritten += page.wasteful.length
      for (let at = 0; at < page.wasteful.length; at += this.#options.batchDocuments) {
        const batch = page.wasteful.slice(at, at + this.#options.batchDocuments)
        await writer.write(batch, draft => { for (const id of batch) draft.compactDocument(id) })
      }
      this.#advance(page.ids.length)
      await this.#rest(this.#clock.monotonic() - startedAt)
      if (this.#stopped.aborted) return
    }
    await writer.write([], draft => draft.dropReplacedBytes(replacedBytes))
    if (rewritten === 0) return
    this.#progress = { ...this.#progress, phase: 'disk', updatedOn: this.#clock.now() }
    await records.store.compact(records.keys.all(), this.#stopped)
  }

  /** Returns the ids of the next documents, and of those that have more bodies than leaves. */
  async #nextPage(last: string | undefined): Promise<{ readonly ids: string[]; readonly wasteful: string[] }> {
    const { records } = this.#shard
    const ids: string[] = []
    const wasteful: string[] = []
    const range = records.keys.ids('i', last === undefined ? undefined : { id: last, inclusive: false }, undefined)
    for await (const page of scanEntries(records.store, range, {}, this.#options.pageDocuments)) {
      for (const [key, value] of page) {
        const id = ShardKeys.text(key)
        const record = DocumentRecord.decode(id, value)
        ids.push(id)
        if (record.tree.bodyKeys().length > record.leaves.length) wasteful.push(id)
      }
      break
    }
    return { ids, wasteful }
  }

  #advance(documents: number): void {
    const changesDone = this.#progress.changesDone + documents
    this.#progress = {
      ...this.#progress, changesDone, totalChanges: Math.max(this.#progress.totalChanges, changesDone),
      updatedOn: this.#clock.now(),
    }
  }

  #rest(workedMs: number): Promise<void> {
    const { restPart } = this.#options
    return new Promise(resolve => {
      if (this.#stopped.aborted) return resolve()
      const wake = (): void => {
        timer.cancel()
        this.#stopped.removeEventListener('abort', wake)
        resolve()
      }
      const timer = this.#clock.setTimer(workedMs * restPart / (1 - restPart), wake)
      this.#stopped.addEventListener('abort', wake, { once: true })
    })
  }
}
