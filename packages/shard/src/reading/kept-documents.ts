import { hashOf } from './id-filter.ts'
import { DocumentRecord } from '../records/document-record.ts'

/** Longer records are not kept. Documents with a long history or many branches have such records. */
const keptRecordBytesMax = 4 * 1024
/** Estimated bytes of a kept record besides its own: the id and the entry of a map. */
const keptRecordCost = 128
/** Records are copied into buffers of this size, so that they cause no work for the garbage collector. */
const pieceBytes = 256 * 1024
const lengthBytes = 2
/** Number of slots for hashes of ids that were read once, for each kilobyte of the budget. */
const readOnceSlotsPerKilobyte = 4

/**
 * The memory of one node in which records of documents that are read repeatedly are cached. It has two generations,
 * each of half the size. Records that are read go into the recent generation. When that is full, it becomes the older
 * one, and the previous older one is dropped. A record of the older generation that is read again is copied to the
 * recent one.
 */
export class KeptDocumentsBudget {
  readonly #bytesMax: number
  readonly #parts = new Set<KeptDocuments>()
  #bytes = 0
  #pieces: Buffer[] = []
  #olderPieces: readonly Buffer[] = []
  /** Number of bytes of the last piece that are in use. */
  #filled = pieceBytes
  /** Hashes of ids that were read once. The slot of a hash is the hash modulo the number of slots. */
  #readOnce: Uint32Array | undefined

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /**
   * Whether the id has been read recently. An id that is read only once, as by replicators and lists, must not displace
   * other documents.
   */
  readAgain(id: string): boolean {
    const slots = this.#readOnce ??= new Uint32Array(Math.ceil(this.#bytesMax / 1024) * readOnceSlotsPerKilobyte)
    const { block: hash } = hashOf(id)
    const slot = hash % slots.length
    if (slots[slot] === hash) return true
    slots[slot] = hash
    return false
  }

  /** Copies a record of one shard. @returns its position, which is valid until the generation is dropped */
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

  /** Returns a record. @param isOlder whether it is in the older generation */
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
 * A cache of the records of one shard, which need not be read from LevelDB again. Invariant: a cached record is the one
 * that a read of the store would return. It is kept by these rules:
 *
 * - A document is removed from the cache when a batch that changes it is staged, before the batch is written.
 * - A record is not cached if a batch was in flight during the read, or was staged since the read began, because the
 *   record may be from before or after that batch.
 * - A batch that failed counts as in flight until the store has recovered and its content is certain.
 */
export class KeptDocuments {
  readonly #budget: KeptDocumentsBudget
  readonly #inFlight = new Set<object>()
  #stagings = 0
  /** The positions of the records in the two generations, by id. */
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

  /** Call this before a read of the store, and pass the result to `keep`. undefined: the record must not be cached. */
  reading(): number | undefined {
    return this.#inFlight.size === 0 ? this.#stagings : undefined
  }

  keep(id: string, record: Uint8Array, reading: number | undefined): void {
    if (reading !== this.#stagings || record.length > keptRecordBytesMax || !this.#budget.readAgain(id)) return
    // Copy the id: an id that is a slice of a longer string would keep that whole string in memory.
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

  /**
   * Call this when the store has recovered from a failure: no batch is in flight, and the store's content is certain.
   */
  settled(): void {
    this.#inFlight.clear()
  }

  /** Drops the older generation; the recent one becomes the older one. @returns the number of documents in it */
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
