/**
 * The design documents of the databases that this node serves. Each write needs the validation functions of its
 * database, and they may lie in shards of which this node has no replica.
 *
 * An entry is one database. It is read when it is first used, and requests that come meanwhile wait for the same
 * reading. It is read again
 * - when this node has written a design document (`written`): the old entry is not used any more;
 * - when a node reports that its replica has committed one (`changed`): the old entry is used only if the new reading
 *   fails or takes longer than `confirmWaitMs`;
 * - when it is used and was read more than `confirmMs` ago, because reports can be lost. The old entry remains in use
 *   in the same two cases.
 *
 * A reading that began before a call of `written` or `changed` does not count as one after it.
 */
import { ApiError } from '@sectional/core'
import { RepeatedLines } from '@sectional/runtime'
import type { Runtime } from '@sectional/runtime'
import { DesignDocuments } from '../contracts/design-document.ts'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { DesignDocumentOptions } from './design-document-options.ts'
import { bytesOf } from './design-documents-read.ts'
import type { DesignDocumentsRead } from './design-documents-read.ts'

/** Reads the design documents of a database. `known` are those of the reading before. */
export type ReadDesignDocuments = (
  db: DatabaseRecord, known: DesignDocuments, bytesMax: number,
) => Promise<DesignDocumentsRead>

/** The design documents of one database. */
interface Entry {
  readonly incarnation: string
  /** Undefined before the first successful reading. */
  documents: DesignDocuments | undefined
  /** Number of calls of `written` and `changed` so far. */
  changes: number
  /** The value of `changes` at the last call of `written`. Documents of earlier readings are not used. */
  required: number
  /** The value of `changes` when the reading that gave `documents` began. */
  covered: number
  /** The greatest value of `changes` for which a reading has ended, even if it failed, or was waited for in vain. */
  attempted: number
  /** Monotonic time of the start of that reading in milliseconds, or of its end when it failed. */
  readAt: number
  /** Monotonic time of the last use, in milliseconds. */
  usedAt: number
  bytes: number
  reading: Promise<void> | undefined
  failure: unknown
}

/** Estimated memory of an entry beside the bodies of its documents. */
const entryBytes = 512
/** Estimated memory of a document for each byte of its body: the bytes and what is parsed from them. */
const memoryFactor = 4

export class DesignDocumentCache {
  readonly #clock: Runtime['clock']
  readonly #options: DesignDocumentOptions
  readonly #read: ReadDesignDocuments
  readonly #warnings: RepeatedLines
  readonly #readings
  /** By the incarnation of the database. */
  readonly #entries = new Map<string, Entry>()
  #bytes = 0

  constructor(
    { clock, log, metrics }: Pick<Runtime, 'clock' | 'log' | 'metrics'>, options: DesignDocumentOptions,
    read: ReadDesignDocuments,
  ) {
    this.#clock = clock
    this.#options = options
    this.#read = read
    this.#warnings = new RepeatedLines(log, clock)
    this.#readings = metrics.counter(
      'sectional_design_document_readings_total',
      'Readings of the design documents of a database, by whether a majority of the replicas answered.', ['outcome'],
    )
  }

  /** Estimated memory of all entries, in bytes. */
  get bytes(): number { return this.#bytes }

  /** Returns the design documents if they can be used without a wait, otherwise undefined. */
  current(db: DatabaseRecord): DesignDocuments | undefined {
    const entry = this.#entries.get(db.incarnation)
    if (entry === undefined || entry.attempted !== entry.changes || !isUsable(entry, entry.required)) return undefined
    const now = this.#clock.monotonic()
    const age = now - entry.readAt
    if (age >= this.#options.confirmMs) return undefined
    entry.usedAt = now
    if (age >= this.#options.confirmAheadMs) entry.reading ??= this.#begin(db, entry)
    return entry.documents
  }

  /**
   * Returns the design documents of a database.
   *
   * @throws ApiError `service_unavailable` with `Retry-After` when they are not known and no replica of a shard answers
   */
  async open(db: DatabaseRecord): Promise<DesignDocuments> {
    const current = this.current(db)
    if (current !== undefined) return current
    const entry = this.#entryOf(db)
    // What is changed from now on does not concern this request.
    const { changes, required } = entry
    do {
      const reading = entry.reading ??= this.#begin(db, entry)
      if (!isUsable(entry, required)) await reading
      else if (!await this.#endsInTime(reading)) {
        // Requests that come before the next comparison is due do not wait again, unless there was a change meanwhile.
        entry.attempted = Math.max(entry.attempted, changes)
        entry.readAt = this.#clock.monotonic()
        this.#warnings.warn('slow', { database: db.name }, unconfirmed)
        break
      }
    } while (entry.attempted < changes)
    if (!isUsable(entry, required)) throw entry.failure
    entry.usedAt = this.#clock.monotonic()
    return entry.documents!
  }

  /** Call this before a write of a design document is answered that this node has coordinated. */
  written(incarnation: string): void {
    const entry = this.#entries.get(incarnation)
    if (entry !== undefined) entry.required = ++entry.changes
  }

  /** Call this when a design document of a database may have changed. */
  changed(incarnation: string): void {
    const entry = this.#entries.get(incarnation)
    if (entry !== undefined) entry.changes++
  }

  #entryOf({ incarnation }: DatabaseRecord): Entry {
    let entry = this.#entries.get(incarnation)
    if (entry === undefined) {
      entry = {
        incarnation, documents: undefined, changes: 0, required: 0, covered: -1, attempted: -1, readAt: 0,
        usedAt: this.#clock.monotonic(), bytes: entryBytes, reading: undefined, failure: undefined,
      }
      this.#entries.set(incarnation, entry)
      this.#bytes += entry.bytes
      this.#evict(entry)
    }
    return entry
  }

  /** Resolves when the reading has ended. Never rejects: a failure is kept in the entry. */
  async #begin(db: DatabaseRecord, entry: Entry): Promise<void> {
    const { changes } = entry
    const begunAt = this.#clock.monotonic()
    try {
      const { documents, confirmed } = await this.#read(
        db, entry.documents ?? new DesignDocuments(), Math.floor(this.#options.bytesMax() / memoryFactor),
      )
      entry.documents = documents
      entry.covered = changes
      entry.failure = undefined
      entry.readAt = begunAt
      this.#readings.add(1, { outcome: confirmed ? 'confirmed' : 'unconfirmed' })
      if (!confirmed) this.#warnings.warn('minority', { database: db.name }, unconfirmed)
      this.#resize(entry, entryBytes + memoryFactor * bytesOf(documents))
    } catch (error) {
      const isKnown = error instanceof ApiError
      entry.failure = isKnown ? error : new ApiError('internal_server_error', undefined, { cause: error })
      this.#readings.add(1, { outcome: 'failed' })
      entry.readAt = this.#clock.monotonic()
      this.#warnings.warn('failed', { database: db.name, error: String(error) }, unconfirmed)
    }
    entry.attempted = Math.max(entry.attempted, changes)
    entry.reading = undefined
  }

  /** Returns false when the reading takes longer than `confirmWaitMs`. */
  async #endsInTime(reading: Promise<void>): Promise<boolean> {
    const { promise: late, resolve } = Promise.withResolvers<false>()
    const timer = this.#clock.setTimer(this.#options.confirmWaitMs, () => resolve(false))
    try {
      return await Promise.race([reading.then(() => true), late])
    } finally {
      timer.cancel()
    }
  }

  #resize(entry: Entry, bytes: number): void {
    if (this.#entries.get(entry.incarnation) !== entry) return
    this.#bytes += bytes - entry.bytes
    entry.bytes = bytes
    this.#evict(entry)
  }

  /** Removes the least recently used entries, except `kept`, until the others fit. */
  #evict(kept: Entry): void {
    const bytesMax = this.#options.bytesMax()
    if (this.#bytes <= bytesMax) return
    const oldest = [...this.#entries.values()].sort((a, b) => a.usedAt - b.usedAt)
    // More is removed than necessary, so that a full cache is not sorted again for each new database.
    const target = bytesMax * 0.9
    for (const entry of oldest) {
      if (this.#bytes <= target) return
      if (entry === kept || entry.reading !== undefined) continue
      this.#entries.delete(entry.incarnation)
      this.#bytes -= entry.bytes
    }
  }
}

const unconfirmed = 'the design documents of a database could not be compared with a majority of its replicas; '
  + 'the known ones stay in use'

function isUsable({ documents, covered }: Entry, required: number): boolean {
  return documents !== undefined && covered >= required
}
