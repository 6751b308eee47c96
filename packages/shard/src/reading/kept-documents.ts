import { hashOf } from './id-filter.ts'
import { DocumentRecord } from '../records/document-record.ts'

/** Longer records, of documents with a long history or many branches, are not kept. */
const keptRecordBytesMax = 4 * 1024
/** What a record takes besides its bytes: the id and its place in a map. */
const keptRecordCost = 128
/** Records are copied into pieces of memory of this size, so that keeping them makes no work for the collector. */
const pieceBytes = 256 * 1024
const lengthBytes = 2
/** Places in which ids that were read once are remembered, for each kilobyte of the budget. */
const readOnceSlotsPerKilobyte = 4

/**
 * The memory of one node for documents that are read again and again. Half of it takes in what is read; when that half
 * is full it becomes the other half, whose documents are forgotten unless they are read before the next turn.
 */
export class KeptDocumentsBudget {
  readonly #bytesMax: number
  readonly #parts = new Set<KeptDocuments>()
  #bytes = 0
  #pieces: Buffer[] = []
  #olderPieces: readonly Buffer[] = []
  /** Bytes of the last piece that are taken. */
  #filled = pieceBytes
  /** Hashes of ids, by a part of themselves. */
  #readOnce: Uint32Array | undefined

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /**
   * Whether the id has been read lately. One that is read once, as most are by replicators and lists, must not push out
   * others.
   */
  readAgain(id: string): boolean {
    const slots = this.#readOnce ??= new Uint32Array(Math.ceil(this.#bytesMax / 1024) * readOnceSlotsPerKilobyte)
    const { block: hash } = hashOf(id)
    const slot = hash % slots.length
    if (slots[slot] === hash) return true
    slots[slot] = hash
    return false
  }

  /** Copies a record of a part. @returns where it lies, until the next turn but one */
  put(part: KeptDocuments, record: Uint8Array): number {
    const cost = keptRecordCost + record.length
    if (this.#bytes + cost > this.#bytesMax / 2) this.#turn()
    this.#bytes += cost
    this.#parts.add(part)
    if (this.#filled + lengthBytes + record.length > pieceBytes) {
      this.#pieces.push(Buffer.allocUnsafeSlow(pieceBytes))
      this.#filled = 0
    }
    const last = this.#pieces.length - 1
    const piece = this.#pieces[last]!
    const place = last * pieceBytes + this.#filled
    this.#filled = piece.writeUInt16LE(record.length, this.#filled)
    piece.set(record, this.#filled)
    this.#filled += record.length
    return place
  }

  /** @param isOlder put before the last turn */
  read(place: number, isOlder: boolean): Uint8Array {
    const piece = (isOlder ? this.#olderPieces : this.#pieces)[Math.floor(place / pieceBytes)]!
    const start = place % pieceBytes
    return piece.subarray(start + lengthBytes, start + lengthBytes + piece.readUInt16LE(start))
  }

  leave(part: KeptDocuments): void {
    this.#parts.delete(part)
  }

  #turn(): void {
    for (const part of this.#parts) if (part.turn() === 0) this.#parts.delete(part)
    this.#olderPieces = this.#pieces
    this.#pieces = []
    this.#filled = pieceBytes
    this.#bytes = 0
  }
}

/**
 * Records of one shard that LevelDB need not be asked for again. What is kept is what a read of the store would give:
 *
 * - a document is forgotten when a batch that changes it is staged, before any of it is on the disk;
 * - nothing that was read while a batch was in flight, or before the last one was staged, is kept: it may be of either
 *   side of that batch;
 * - a batch that failed counts as in flight until the store has recovered and stands by what it then holds.
 */
export class KeptDocuments {
  readonly #budget: KeptDocumentsBudget
  readonly #inFlight = new Set<object>()
  #stagings = 0
  /** Where the records lie, by id. */
  #recent = new Map<string, number>()
  #older = new Map<string, number>()

  constructor(budget: KeptDocumentsBudget) {
    this.#budget = budget
  }

  get(id: string): DocumentRecord | undefined {
    const recent = this.#recent.get(id)
    if (recent !== undefined) return DocumentRecord.decode(id, this.#budget.read(recent, false))
    const older = this.#older.get(id)
    if (older === undefined) return undefined
    const bytes = this.#budget.read(older, true)
    this.#put(id, bytes)
    return DocumentRecord.decode(id, bytes)
  }

  /** To be called before a read, and its result given to `keep`. */
  reading(): number | undefined {
    return this.#inFlight.size === 0 ? this.#stagings : undefined
  }

  keep(id: string, record: Uint8Array, reading: number | undefined): void {
    if (reading !== this.#stagings || record.length > keptRecordBytesMax || !this.#budget.readAgain(id)) return
    // An id that was cut out of a longer text keeps all of it in memory.
    this.#put(Buffer.from(id).toString(), record)
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

  #put(id: string, record: Uint8Array): void {
    const place = this.#budget.put(this, record)
    this.#recent.set(id, place)
  }
}
