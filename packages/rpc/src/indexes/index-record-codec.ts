/** Encodes and decodes the records that several verbs of indexes share. */
import { asBuffer } from '@sectional/core'
import type {
  GroupPlace, IndexDefinition, IndexHead, IndexRead, IndexState, RequiredSequence, RowBound, RowRange, ScannedPlace,
} from '@sectional/core'
import type { PayloadReader, PayloadWriter } from '../schema/payload.ts'
import { count, optionalLimit, ProtocolError, required } from '../schema/schema.ts'
import type { WireMessage } from '../schema/schema.ts'
import { decodeCheckpoint } from '../shard/record-codec.ts'

/** Converts a sort key, which has a character for each byte, to its bytes. */
export function encodeKey(key: string): Uint8Array {
  return Buffer.from(key, 'latin1')
}

/** @param bytes an empty array when the field was not sent */
export function decodeKey(bytes: Uint8Array | readonly never[]): string {
  return bytes.length === 0 ? '' : asBuffer(bytes as Uint8Array).toString('latin1')
}

/** Appends a sort key to the payload and returns its length. */
export function addKey(key: string, payload: PayloadWriter): number {
  return payload.add(encodeKey(key))
}

/** @throws ProtocolError when the payload is shorter */
export function takeKey(length: number, payload: PayloadReader): string {
  return decodeKey(payload.take(length))
}

export function encodeDefinition({ kind, map, reduce, options }: IndexDefinition): object {
  return {
    kind, map, reduce,
    options: Object.entries(options).map(([name, value]) => (
      typeof value === 'string' ? { name, text: value } : { name, flag: value })),
  }
}

export function decodeDefinition(message: WireMessage | null): IndexDefinition {
  const { kind, map, reduce, options } = required(message, 'definition of an index')
  return { kind, map, reduce, options: Object.fromEntries(options.map(decodeOption)) }
}

function decodeOption(option: WireMessage): [string, string | boolean] {
  if (option.value === undefined) throw new ProtocolError('an option of an index has no value')
  return [option.name, option[option.value]]
}

/** `undefined` stands for the newest sequence, as the absence of the field does on the wire. */
export function encodeThrough(through: RequiredSequence): number | undefined {
  return through === 'newest' ? undefined : Math.min(through, Number.MAX_SAFE_INTEGER)
}

export function decodeThrough(through: number | null): RequiredSequence {
  return through === null ? 'newest' : count(through, 'required sequence')
}

export function decodeState(message: WireMessage | null): IndexState {
  const { position, readSequence, version, rowCount } = required(message, 'state of an index')
  return {
    position: decodeCheckpoint(required(position, 'position of an index')),
    readSequence: count(readSequence, 'sequence of a build'),
    version,
    rowCount: count(rowCount, 'number of rows'),
  }
}

/** Encodes the head of an answer as a row of the stream. */
export function encodeHead(head: IndexHead): object {
  return { head: { state: head, rowsBefore: head.rowsBefore } }
}

export function decodeHead({ state, rowsBefore }: WireMessage): IndexHead {
  return { kind: 'head', ...decodeState(state), rowsBefore: count(rowsBefore, 'number of rows') }
}

export function encodeRead({ index, through, ranges, descending, skip = 0, limit }: IndexRead<unknown>): object {
  return {
    index, descending,
    through: encodeThrough(through),
    ranges: ranges.map(({ lower, upper }) => (
      { lower: lower && encodeBound(lower), upper: upper && encodeBound(upper) })),
    skip: Math.min(skip, Number.MAX_SAFE_INTEGER),
    limit: optionalLimit(limit),
  }
}

/** @param after the place after which the answer begins; null: it begins with the first range */
export function decodeRead<Place extends { readonly range: number }>(
  message: WireMessage | null, after: Place | null,
): IndexRead<Place> {
  const { index, through, ranges, descending, skip, limit } = required(message, 'read of an index')
  if (after !== null && after.range >= ranges.length) throw new ProtocolError('a place is in no range of its request')
  return {
    index, descending,
    through: decodeThrough(through),
    ranges: ranges.map(decodeRange),
    ...(after !== null && { after }),
    ...(skip !== 0 && { skip: count(skip, 'number of skipped rows') }),
    ...(limit !== null && { limit }),
  }
}

export function encodePlace({ range, key, id, number }: ScannedPlace): object {
  return { range, key: encodeKey(key), id, number }
}

export function decodePlace({ range, key, id, number }: WireMessage): ScannedPlace {
  return { range, key: decodeKey(key), id, number }
}

export function encodeGroupPlace({ range, group }: GroupPlace): object {
  return { range, group: encodeKey(group) }
}

export function decodeGroupPlace({ range, group }: WireMessage): GroupPlace {
  return { range, group: decodeKey(group) }
}

function encodeBound({ key, id, inclusive }: RowBound): object {
  return { key: encodeKey(key), id, inclusive }
}

function decodeRange({ lower, upper }: WireMessage): RowRange {
  return { ...(lower !== null && { lower: decodeBound(lower) }), ...(upper !== null && { upper: decodeBound(upper) }) }
}

function decodeBound({ key, id, inclusive }: WireMessage): RowBound {
  return { key: decodeKey(key), inclusive, ...(id !== null && { id }) }
}
