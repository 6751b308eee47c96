/** Reads LevelDB's manifest: the tables and logs of a store (github.com/google/leveldb/blob/main/doc/impl.md). */
const comparatorTag = 1
const logNumberTag = 2
const nextFileTag = 3
const lastSequenceTag = 4
const compactPointerTag = 5
const deletedFileTag = 6
const newFileTag = 7
const previousLogTag = 9

export interface TableFile {
  readonly number: number
  readonly bytes: number
  /** The first and last key, without the trailer that LevelDB adds to keys. */
  readonly smallest: string
  readonly largest: string
}

export interface Manifest {
  /** LevelDB replays the logs from this number on. */
  readonly logNumber: number
  /** At least the sequence of the last operation that is in a table. */
  readonly lastSequence: number
  readonly tables: readonly TableFile[]
}

/** The order of keys, which LevelDB does not let a store change. */
const comparator = 'leveldb.BytewiseComparator'
/** LevelDB adds a sequence and a type to each key. */
const keyTrailerBytes = 8

/** @throws RangeError when a record is not an edit of a manifest, or names another comparator */
export function readManifest(records: readonly Buffer[]): Manifest {
  const tables = new Map<number, TableFile>()
  let logNumber = 0
  let lastSequence = 0
  for (const record of records) {
    const fields = new FieldReader(record)
    while (!fields.atEnd) {
      const tag = fields.varint()
      if (tag === comparatorTag) checkComparator(fields.bytes().toString())
      else if (tag === logNumberTag) logNumber = fields.varint()
      else if (tag === nextFileTag || tag === previousLogTag) fields.varint()
      else if (tag === lastSequenceTag) lastSequence = fields.varint()
      else if (tag === compactPointerTag) fields.skipPointer()
      else if (tag === deletedFileTag) tables.delete(fields.deletedFile())
      else if (tag === newFileTag) fields.newFile(tables)
      else throw new RangeError(`tag ${tag}`)
    }
  }
  return { logNumber, lastSequence, tables: [...tables.values()] }
}

function checkComparator(name: string): void {
  if (name !== comparator) throw new RangeError(`the comparator ${name}, not ${comparator}`)
}

class FieldReader {
  readonly #record: Buffer
  #at = 0

  constructor(record: Buffer) {
    this.#record = record
  }

  get atEnd(): boolean {
    return this.#at >= this.#record.length
  }

  /** Reads a number of at most 2^53, which sequences and file numbers never reach. */
  varint(): number {
    let value = 0
    for (let factor = 1; ; factor *= 128) {
      const byte = this.#record.readUInt8(this.#at++)
      value += (byte & 0x7f) * factor
      if (byte < 0x80) return value
    }
  }

  bytes(): Buffer {
    const length = this.varint()
    if (this.#at + length > this.#record.length) throw new RangeError('a field is longer than its record')
    return this.#record.subarray(this.#at, this.#at += length)
  }

  skipPointer(): void {
    this.varint()
    this.bytes()
  }

  deletedFile(): number {
    this.varint()
    return this.varint()
  }

  newFile(tables: Map<number, TableFile>): void {
    this.varint()
    const number = this.varint()
    const bytes = this.varint()
    tables.set(number, { number, bytes, smallest: userKey(this.bytes()), largest: userKey(this.bytes()) })
  }
}

function userKey(key: Buffer): string {
  return key.subarray(0, Math.max(0, key.length - keyTrailerBytes)).toString()
}
