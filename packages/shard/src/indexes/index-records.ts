/** The bytes of the records of an index, except pages of summaries. */
import { isUtf8 } from 'node:buffer'
import { crc32 } from 'node:zlib'
import { asBuffer, type IndexDefinition } from '@sectional/core'
import { sealBytes, sealed, sealRecord } from '@sectional/runtime'
import { ByteReader } from '../records/byte-reader.ts'
import { ByteWriter } from '../records/byte-writer.ts'
import { checkSeal, DamagedRecordError } from '../records/damaged-record.ts'
import { emptyDigest, type RowsDigest } from './rows-digest.ts'

/** The state of an index. It is written in the batch of the rows that it describes. */
export interface StoredState {
  /** The history of the replica whose changes the index contains. */
  readonly history: string
  /** The sequence up to which the changes were read to their end (`IndexState.position`). */
  readonly sequence: number
  /** The sequence of the last change that was applied, or `sequence` if that is greater. A build continues there. */
  readonly readSequence: number
  /** Names this set of rows and summaries: no state of the store with others has ever had the same version. */
  readonly version: string
  readonly digest: RowsDigest
  readonly rowCount: number
  readonly failedCount: number
  /** Bytes of the keys and values of all rows. */
  readonly externalBytes: number
  /** Bytes of the rows and of the records of documents. */
  readonly activeBytes: number
  /**
   * The number of levels of the summary pages. 0: there are none. Invariant: above 0, the pages summarise exactly the
   * rows of this state.
   */
  readonly height: number
  /** Whether the range of pages may contain pages of a summary that was not finished. They are never read. */
  readonly hasRemains: boolean
}

export function newState(history: string, version: string): StoredState {
  return {
    history, version, sequence: 0, readSequence: 0, digest: emptyDigest, rowCount: 0, failedCount: 0, externalBytes: 0,
    activeBytes: 0, height: 0, hasRemains: false,
  }
}

/** Indexes whose state has another format are built anew. */
const format = 3

export function encodeState(state: StoredState): Uint8Array {
  const writer = new ByteWriter(sealBytes)
  writer.byte(format)
  writer.text(state.history)
  writer.integer(state.sequence)
  writer.integer(state.readSequence)
  writer.text(state.version)
  for (const word of state.digest) writer.integer(word)
  writer.integer(state.rowCount)
  writer.integer(state.failedCount)
  writer.integer(state.externalBytes)
  writer.integer(state.activeBytes)
  writer.integer(state.height)
  writer.byte(state.hasRemains ? 1 : 0)
  return sealRecord(writer.finish())
}

export function decodeState(bytes: Uint8Array | undefined): StoredState {
  if (bytes === undefined) throw new DamagedRecordError('the state of an index is missing')
  checkSeal(bytes, 'the state of an index')
  const reader = new ByteReader(bytes, sealBytes)
  const found = reader.byte()
  if (found !== format) throw new DamagedRecordError(`the state of an index has format ${found}, not ${format}`)
  return {
    history: reader.text(),
    sequence: reader.integer(),
    readSequence: reader.integer(),
    version: reader.text(),
    digest: [reader.integer(), reader.integer(), reader.integer(), reader.integer()],
    rowCount: reader.integer(),
    failedCount: reader.integer(),
    externalBytes: reader.integer(),
    activeBytes: reader.integer(),
    height: reader.integer(),
    hasRemains: reader.byte() === 1,
  }
}

/** A row in the record of its document. Its number is its place in the list. */
export interface ListedRow { readonly key: string; readonly valueBytes: number }

/** The rows of a document, and whether its map function failed. A document with neither has no record. */
export interface DocumentRows { readonly failed: boolean; readonly rows: readonly ListedRow[] }

export const noRows: DocumentRows = { failed: false, rows: [] }

const documentWriter = new ByteWriter(sealBytes)

export function encodeDocumentRows({ failed, rows }: DocumentRows): Uint8Array {
  documentWriter.byte(failed ? 1 : 0)
  documentWriter.integer(rows.length)
  for (const { key, valueBytes } of rows) {
    documentWriter.text(key)
    documentWriter.integer(valueBytes)
  }
  return sealRecord(documentWriter.finish())
}

export function decodeDocumentRows(bytes: Uint8Array | undefined): DocumentRows {
  if (bytes === undefined) return noRows
  checkSeal(bytes, 'the list of a document\'s rows')
  const reader = new ByteReader(bytes, sealBytes)
  const failed = reader.byte() === 1
  const rows = new Array<ListedRow>(reader.integer())
  for (let i = 0; i < rows.length; i++) rows[i] = { key: reader.text(), valueBytes: reader.integer() }
  return { failed, rows }
}

/** The entry of an index in the directory of the store. */
export interface DirectoryRecord {
  readonly prefix: number
  readonly definition: IndexDefinition
  /** The version of the indexer with which the index is built. */
  readonly indexerVersion: string
}

export function encodeDirectoryRecord(record: DirectoryRecord): Uint8Array {
  return sealed(Buffer.from(JSON.stringify(record)))
}

export function decodeDirectoryRecord(bytes: Uint8Array): DirectoryRecord {
  checkSeal(bytes, 'the entry of an index')
  return JSON.parse(Buffer.from(bytes.subarray(sealBytes)).toString()) as DirectoryRecord
}

export function encodeNextPrefix(prefix: number): Uint8Array {
  return sealed(Buffer.from(String(prefix)))
}

export function decodeNextPrefix(bytes: Uint8Array | undefined): number {
  if (bytes === undefined) return 1
  checkSeal(bytes, 'the next prefix of the store of indexes')
  return Number(Buffer.from(bytes.subarray(sealBytes)).toString())
}

/** The bytes before the value of a row have seven bits each: 32 bits of a checksum, and a number of three bits. */
const rowHeadBytes = 5
const rowHeadBits = 7
const rowHeadMask = 0x7f
/** Where the number of transcoded bytes begins in the last byte of the head, behind four bits of the checksum. */
const transcodedShift = 4
/** The greatest number: all bytes of the value are transcoded. */
const allTranscoded = 7

/**
 * Returns the record of a row: its value, with a checksum over the place and the value. So a row that is read under
 * another key than it was written with is known to be damaged.
 *
 * The record is UTF-8 (`IterateOptions.text`). In a value that is not, bytes at the beginning are transcoded: each
 * becomes the character with its number. The value of a long key has one or two such bytes (`encodeViewRow`).
 */
export function encodeRow(place: string, value: Uint8Array): Uint8Array {
  const transcoded = transcodedBytes(value)
  const stored = transcoded === 0 ? value : transcode(asBuffer(value), transcoded)
  const record = Buffer.allocUnsafe(rowHeadBytes + stored.length)
  writeRowHead(record, place, stored, transcoded)
  record.set(stored, rowHeadBytes)
  return record
}

/** @throws DamagedRecordError */
export function decodeRow(place: string, record: Uint8Array): Uint8Array {
  const stored = asBuffer(record).subarray(rowHeadBytes)
  const transcoded = record[rowHeadBytes - 1]! >> transcodedShift
  writeRowHead(expectedHead, place, stored, transcoded)
  for (let at = 0; at < rowHeadBytes; at++) {
    if (record[at] !== expectedHead[at]) throw new DamagedRecordError('a row of an index is damaged')
  }
  return transcoded === 0 ? stored : transcodeBack(stored, transcoded)
}

/** Returns the number of bytes at the beginning of a value without which it is UTF-8, or `allTranscoded`. */
function transcodedBytes(value: Uint8Array): number {
  let count = 0
  while (count < allTranscoded && !isUtf8(value.subarray(count))) count++
  return count
}

function transcode(value: Buffer, transcoded: number): Uint8Array {
  if (transcoded === allTranscoded) return Buffer.from(value.toString('latin1'))
  return Buffer.concat([Buffer.from(value.toString('latin1', 0, transcoded)), value.subarray(transcoded)])
}

function transcodeBack(stored: Buffer, transcoded: number): Uint8Array {
  if (transcoded === allTranscoded) return Buffer.from(stored.toString(), 'latin1')
  let end = 0
  for (let count = 0; count < transcoded; count++) end += stored[end]! < 0x80 ? 1 : 2
  return Buffer.concat([Buffer.from(stored.toString('utf8', 0, end), 'latin1'), stored.subarray(end)])
}

const expectedHead = new Uint8Array(rowHeadBytes)

function writeRowHead(target: Uint8Array, place: string, stored: Uint8Array, transcoded: number): void {
  let rest = crc32(stored, crc32(place, transcoded))
  for (let at = 0; at < rowHeadBytes; at++) {
    target[at] = rest & rowHeadMask
    rest >>>= rowHeadBits
  }
  target[rowHeadBytes - 1]! |= transcoded << transcodedShift
}

/** Returns the bytes of a sealed record, such as a row's value. */
export function openRecord(bytes: Uint8Array, what: string): Uint8Array {
  checkSeal(bytes, what)
  return bytes.subarray(sealBytes)
}
