/**
 * Reads LevelDB's log format (github.com/google/leveldb/blob/main/doc/log_format.md), which it uses for both its
 * write-ahead logs and its manifest. LevelDB skips unreadable records of a write-ahead log, so missing records must be
 * found before LevelDB opens the store.
 *
 * A write that a crash interrupted is not damage, because it was never acknowledged as durable. Each batch is synced
 * before the next one is written. Therefore an interrupted write is the last one in the file, and it is either cut off
 * or contains sectors that were never written and read as zeros. Any other record whose checksum does not match was
 * changed after it had been written.
 */
import { crc32c, maskCrc } from './crc32c.ts'

const blockBytes = 32 * 1024
/** The header of each fragment: checksum, length and type. */
const headerBytes = 7
/** The unit that a disk writes completely or not at all. */
const sectorBytes = 512

const fullType = 1
const firstType = 2
const lastType = 4

export interface LogContent {
  /** The records before the first unreadable one, in order. */
  readonly records: readonly Buffer[]
  /** A description of the damage; undefined when there is none, or only an interrupted write at the end. */
  readonly damage: string | undefined
}

/** @param bytes the whole file */
export function readLog(bytes: Buffer): LogContent {
  return new LogReader(bytes).read()
}

/**
 * Returns the records before the first unreadable byte, and the offset after the last of them.
 * @param bytes the whole file
 */
export function readWholeRecords(bytes: Buffer): { readonly records: readonly Buffer[]; readonly end: number } {
  const reader = new LogReader(bytes)
  const { records } = reader.read()
  return { records, end: reader.recordsEnd }
}

class LogReader {
  readonly #bytes: Buffer
  readonly #records: Buffer[] = []
  /** The fragments of a record whose last fragment has not been read yet. */
  #fragments: Buffer[] | undefined
  /** The offset after the last complete record. */
  recordsEnd = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  read(): LogContent {
    const { length } = this.#bytes
    for (let at = 0; at < length;) {
      const left = blockEnd(at) - at
      if (left < headerBytes) {
        at += left
        continue
      }
      const end = this.#fragmentEnd(at)
      const problem = end === undefined ? this.#unreadable(at) : this.#take(at, end)
      if (problem !== undefined) return { records: this.#records, damage: problem }
      if (end === undefined) break
      at = end
    }
    return { records: this.#records, damage: undefined }
  }

  /** Returns the offset after the fragment at `at`; undefined when no fragment with a valid checksum is there. */
  #fragmentEnd(at: number): number | undefined {
    const bytes = this.#bytes
    const limit = Math.min(blockEnd(at), bytes.length)
    if (limit - at < headerBytes) return undefined
    const type = bytes[at + 6]!
    const end = at + headerBytes + bytes.readUInt16LE(at + 4)
    if (type < fullType || type > lastType || end > limit) return undefined
    return this.#fits(at, end) ? end : undefined
  }

  #fits(at: number, end: number): boolean {
    return maskCrc(crc32c(this.#bytes, at + 6, end)) === this.#bytes.readUInt32LE(at)
  }

  /** Adds a fragment to the records; returns a problem, if there is one. */
  #take(at: number, end: number): string | undefined {
    const type = this.#bytes[at + 6]!
    const content = this.#bytes.subarray(at + headerBytes, end)
    const begins = type === fullType || type === firstType
    // Early versions of LevelDB left an empty first fragment at the end of a block.
    if (begins && this.#fragments !== undefined && this.#fragments.some(({ length }) => length > 0)) {
      return `at byte ${at} a record begins inside another one`
    }
    if (!begins && this.#fragments === undefined) return `at byte ${at} a record goes on whose beginning is missing`
    const fragments = begins ? [content] : [...this.#fragments!, content]
    if (type === fullType || type === lastType) {
      this.#records.push(fragments.length === 1 ? content : Buffer.concat(fragments))
      this.#fragments = undefined
      this.recordsEnd = end
    } else {
      this.#fragments = fragments
    }
    return undefined
  }

  #unreadable(at: number): string | undefined {
    const later = this.#nextRecord(at + 1)
    if (later !== undefined) return `at byte ${at} a record cannot be read, although records follow at byte ${later}`
    if (this.#isCutOff(at)) return undefined
    return `at byte ${at} the last record was changed after it had been written`
  }

  /**
   * Returns the offset of a later record, which proves that everything before it was durable. A damaged length hides
   * the start of the next record, so every offset is tried.
   */
  #nextRecord(from: number): number | undefined {
    for (let at = from; at + headerBytes <= this.#bytes.length; at++) {
      const type = this.#bytes[at + 6]!
      if ((type === fullType || type === firstType) && this.#fragmentEnd(at) !== undefined) return at
    }
    return undefined
  }

  #isCutOff(at: number): boolean {
    const { length } = this.#bytes
    if (length - at < headerBytes || this.#hasUnwrittenSector(at)) return true
    const end = at + headerBytes + this.#bytes.readUInt16LE(at + 4)
    // The record reaches beyond the end of the file, unless only its length is damaged.
    return end > length && length <= blockEnd(at) && !this.#fits(at, length)
  }

  #hasUnwrittenSector(from: number): boolean {
    const bytes = this.#bytes
    for (let at = from; at < bytes.length;) {
      const end = Math.min(at - at % sectorBytes + sectorBytes, bytes.length)
      let zero = at
      while (zero < end && bytes[zero] === 0) zero++
      if (zero === end) return true
      at = end
    }
    return false
  }
}

function blockEnd(at: number): number {
  return at - at % blockBytes + blockBytes
}
