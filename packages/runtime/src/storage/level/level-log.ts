/**
 * Reads LevelDB's log format (github.com/google/leveldb/blob/main/doc/log_format.md), in which it writes both its
 * write-ahead logs and its manifest. LevelDB itself skips what it cannot read in a write-ahead log, so whether
 * something is missing must be found out before it opens the store.
 *
 * A write that a crash cut off is no damage: nobody was told that it is durable. Since each batch is synced before the
 * next one is written, it is the last one in the file, and it ends early, or sectors of it were never written and read
 * as zeros. Anything else that does not fit its checksum was changed after it had been written.
 */
import { crc32c, maskCrc } from './crc32c.ts'

const blockBytes = 32 * 1024
/** Checksum, length and type in front of each fragment. */
const headerBytes = 7
/** What a disk writes wholly or not at all. */
const sectorBytes = 512

const fullType = 1
const firstType = 2
const lastType = 4

export interface LogContent {
  /** The records up to the first one that cannot be read, in order. */
  readonly records: readonly Buffer[]
  /** What is wrong, in words; undefined: nothing, or only a write at the end that a crash cut off. */
  readonly damage: string | undefined
}

/** @param bytes a whole file */
export function readLog(bytes: Buffer): LogContent {
  return new LogReader(bytes).read()
}

/**
 * The records in front of anything that cannot be read, and the byte behind the last of them.
 * @param bytes a whole file
 */
export function readWholeRecords(bytes: Buffer): { readonly records: readonly Buffer[]; readonly end: number } {
  const reader = new LogReader(bytes)
  const { records } = reader.read()
  return { records, end: reader.recordsEnd }
}

class LogReader {
  readonly #bytes: Buffer
  readonly #records: Buffer[] = []
  /** Fragments of a record whose last one has not come. */
  #fragments: Buffer[] | undefined
  /** Behind the last record that was read. */
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

  /** Behind the fragment that begins at `at`; undefined: there is none whose checksum holds. */
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

  /** Returns a problem. */
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
   * Where a later record begins: then what is before it was durable. A damaged length hides it, so every byte may be
   * its start.
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
    // It ends behind the end of the file, unless it is its length that is wrong.
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
