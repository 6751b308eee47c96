import { hashOf } from './id-filter.ts'
import type { DocumentRecord } from './records/document-record.ts'

/** Longer records, of documents with a long history or many branches, are not kept. */
const keptRecordBytesMax = 4 * 1024
/** What a record takes in memory: so much, and so many times its bytes when its tree has been decoded. */
const keptRecordCost = 512
const decodedFactor = 9
/** Places in which ids that were read once are remembered. */
const readOnceSlots = 16 * 1024

/**
 * The memory of one node for documents that are read again and again. Half of it takes in what is read; when that half is full it becomes
 * the other half, whose documents are forgotten unless they are read before the next turn.
 */
export class KeptDocumentsBudget {
  readonly #bytesMax: number
  readonly #parts = new Set<KeptDocuments>()
  #bytes = 0
  /** Hashes of ids, by a part of themselves. */
  #readOnce: Uint32Array | undefined

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** Whether the id has been read lately. One that is read once, as most are by replicators and lists, must not push out others. */
  readAgain(id: string): boolean {
    const slots = this.#readOnce ??= new Uint32Array(readOnceSlots)
    const { block: hash } = hashOf(id)
    const slot = hash % readOnceSlots
    if (slots[slot] === hash) return true
    slots[slot] = hash
    return false
  }

  /** To be called before a document is put into a part. */
  take(part: KeptDocuments, bytes: number): void {
    if (this.#bytes + bytes > this.#bytesMax / 2) {
      for (const each of this.#parts) if (each.turn() === 0) this.#parts.delete(each)
      this.#bytes = 0
    }
    this.#bytes += bytes
    this.#parts.add(part)
  }

  leave(part: KeptDocuments): void {
    this.#parts.delete(part)
  }
}

/**
 * Decoded records of one shard that LevelDB need not be asked for again. What is kept is what a read of the store would give:
 *
 * - a document is forgotten when a batch that changes it is staged, before any of it is on the disk;
 * - nothing that was read while a batch was in flight, or before the last one was staged, is kept: it may be of either side of that batch;
 * - a batch that failed counts as in flight until the store has recovered and stands by what it then holds.
 */
export class KeptDocuments {
  readonly #budget: KeptDocumentsBudget
  readonly #inFlight = new Set<object>()
  #stagings = 0
  #recent = new Map<string, DocumentRecord>()
  #older = new Map<string, DocumentRecord>()

  constructor(budget: KeptDocumentsBudget) {
    this.#budget = budget
  }

  get(id: string): DocumentRecord | undefined {
    const recent = this.#recent.get(id)
    if (recent !== undefined) return recent
    const older = this.#older.get(id)
    if (older !== undefined) this.#put(id, older)
    return older
  }

  /** To be called before a read, and its result given to `keep`. */
  reading(): number | undefined {
    return this.#inFlight.size === 0 ? this.#stagings : undefined
  }

  keep(id: string, record: DocumentRecord, reading: number | undefined): void {
    if (reading !== this.#stagings || record.encodedBytes > keptRecordBytesMax || !this.#budget.readAgain(id)) return
    this.#put(id, record)
  }

  staged(batch: object, ids: Iterable<readonly [id: string, ...unknown[]]>): void {
    this.#stagings++
    this.#inFlight.add(batch)
    if (this.#recent.size === 0 && this.#older.size === 0) return
    for (const [id] of ids) this.forget(id)
  }

  forget(id: string): void {
    this.#recent.delete(id)
    this.#older.delete(id)
  }

  landed(batch: object): void {
    this.#inFlight.delete(batch)
  }

  /** After a failure: nothing is in flight, and the store stands by what it holds. */
  settled(): void {
    this.#inFlight.clear()
  }

  /** Forgets what was not read since the last turn. @returns how many documents are left */
  turn(): number {
    this.#older = this.#recent
    this.#recent = new Map()
    return this.#older.size
  }

  release(): void {
    this.#recent = new Map()
    this.#older = new Map()
    this.#budget.leave(this)
  }

  #put(id: string, record: DocumentRecord): void {
    this.#budget.take(this, keptRecordCost + decodedFactor * record.encodedBytes)
    this.#recent.set(id, record)
  }
}
