/**
 * The rows and groups of a view as indexes store them and coordinators receive them. They contain the emitted key and
 * value as JSON texts, so that an answer is put together without parsing them:
 *
 *     row   = length of the key in bytes (varint), key, value
 *     group = length of the key in bytes (varint), key, state
 *
 * The state of a built-in reduce function is what `Reduction.encode` returns. That of a custom one is written by
 * `encodeReducedJson` and `encodeReduceFailure`:
 *
 *     state   = JSON text | failure
 *     failure = 00, length of the error in bytes (varint), error, reason
 *
 * `ReduceAgain` of a view returns groups whose states have this last form, also for built-in reduce functions.
 */
import { asBuffer } from '../encoding/as-buffer.ts'
import { ByteWriter } from '../encoding/byte-writer.ts'
import { ByteReader, varintLength, writeVarint } from '../encoding/varint.ts'

/** An emitted key and value, as JSON texts. */
export interface ViewRow { readonly key: string; readonly value: string }

/** A group of rows: its key as JSON text, null when all rows are one group, and its reduced value. */
export interface ViewGroupState { readonly key: string | null; readonly state: Uint8Array }

/** Why a group has no value, as clients see it in the group's row. */
export interface ViewReduceFailure { readonly error: string; readonly reason: string }

/** What a client receives for a group: JSON text, or the failure of the reduce function. */
export type ReducedJson = { readonly json: string; readonly failure?: undefined }
  | { readonly failure: ViewReduceFailure }

/** JSON text never starts with this byte. */
const failureTag = 0

export function encodeViewRow(key: string, value: string): Uint8Array {
  const keyBytes = Buffer.byteLength(key)
  const lengthBytes = varintLength(keyBytes)
  const row = Buffer.allocUnsafe(lengthBytes + keyBytes + Buffer.byteLength(value))
  writeVarint(row, 0, keyBytes)
  row.write(key, lengthBytes)
  row.write(value, lengthBytes + keyBytes)
  return row
}

/** @throws RangeError when the bytes are not a row */
export function decodeViewRow(row: Uint8Array): ViewRow {
  const reader = new ByteReader(row)
  const key = reader.text(reader.varint(), 'utf8')
  return { key, value: reader.text(row.length - reader.offset, 'utf8') }
}

/**
 * Returns where the key of a row begins and ends; the value follows it.
 *
 * @throws RangeError when the bytes are not a row
 */
export function viewRowKey(row: Uint8Array): { readonly from: number; readonly to: number } {
  const reader = new ByteReader(row)
  const length = reader.varint()
  const from = reader.offset
  reader.skip(length)
  return { from, to: from + length }
}

/** Returns the value of a row as UTF-8, in the memory of the row. @throws RangeError when the bytes are not a row */
export function viewRowValue(row: Uint8Array): Uint8Array {
  const reader = new ByteReader(row)
  reader.skip(reader.varint())
  return reader.raw(row.length - reader.offset)
}

export function encodeViewGroup(key: string | null, state: Uint8Array): Uint8Array {
  const writer = new ByteWriter()
  // JSON text is never empty, so that an empty key stands for null.
  writer.text(key ?? '')
  writer.raw(state)
  return writer.result()
}

/**
 * Returns the parts of a group; the state is in the memory of the group.
 *
 * @throws RangeError when the bytes are not a group
 */
export function decodeViewGroup(group: Uint8Array): ViewGroupState {
  const reader = new ByteReader(group)
  const key = reader.text(reader.varint(), 'utf8')
  return { key: key === '' ? null : key, state: reader.raw(group.length - reader.offset) }
}

export function encodeReducedJson(json: string): Uint8Array {
  return Buffer.from(json)
}

export function encodeReduceFailure({ error, reason }: ViewReduceFailure): Uint8Array {
  const writer = new ByteWriter()
  writer.byte(failureTag)
  writer.text(error)
  writer.raw(Buffer.from(reason))
  return writer.result()
}

/** Reads what `encodeReducedJson` or `encodeReduceFailure` has written. @throws RangeError for other bytes */
export function decodeReduced(state: Uint8Array): ReducedJson {
  if (state.length === 0) throw new RangeError('a reduced value is empty')
  if (state[0] !== failureTag) return { json: asBuffer(state).toString() }
  const reader = new ByteReader(state, 1)
  const error = reader.text(reader.varint(), 'utf8')
  return { failure: { error, reason: reader.text(state.length - reader.offset, 'utf8') } }
}
