/**
 * Since-tokens: a place in a database's changes, as a vector over its shards (design.md section 4, api.md B3).
 *
 *     token   N "-" base64url(bytes)      N: the sum of the sequences, for people; ignored on the way in
 *     bytes   1, dictionary of nodes, varint parts, part.., CRC-32 of all before (big endian)
 *     part    range, varint node, history, varint sequence
 *     range   zigzag varint of begin - (end of the part before + 1), then log2 of the width in a byte, or 64 and
 *             varint width
 *     history varint 2 * length + 1 if the bytes are the text's hex digits, bytes
 *     dictionary   varint count, each varint length and UTF-8
 *
 * With 8 shards on 3 nodes a token takes about 250 characters, most of them histories: URLs must hold it.
 */
import { crc32 } from 'node:zlib'
import type { HashRange } from '../contracts/shard-replica.ts'
import { ByteReader, VARINT_BYTES_MAX, writeVarint } from '../encoding/varint.ts'
import { compareRanges } from '../sharding/hash-ring.ts'

/** Everything up to `sequence` of that replica's life (`history`) has been read in this range. */
export interface SincePart {
  readonly range: HashRange
  readonly node: string
  readonly history: string
  readonly sequence: number
}

export type Since =
  | { readonly kind: 'start' }
  | { readonly kind: 'now' }
  | { readonly kind: 'vector'; readonly parts: readonly SincePart[] }
  /** To be answered with 400. */
  | { readonly kind: 'malformed'; readonly reason: string }

/** Longest token that is looked at, in characters. */
export const SINCE_TOKEN_LENGTH_MAX = 262_144
/** Most parts of one token. */
export const SINCE_PARTS_MAX = 8192

const VERSION = 1
const EXPLICIT_WIDTH = 64
const CHECKSUM_BYTES = 4

/** @throws RangeError with more than `SINCE_PARTS_MAX` parts */
export function encodeSinceToken(parts: readonly SincePart[]): string {
  if (parts.length > SINCE_PARTS_MAX) throw new RangeError(`a since-token holds at most ${SINCE_PARTS_MAX} parts`)
  const sorted = parts.toSorted((a, b) => compareRanges(a.range, b.range))
  const nodes = [...new Set(sorted.map(part => part.node))].sort()
  const out = new TokenWriter()
  out.byte(VERSION)
  out.varint(nodes.length)
  for (const node of nodes) {
    const name = Buffer.from(node, 'utf8')
    out.varint(name.length)
    out.bytes(name)
  }
  out.varint(sorted.length)
  let expected = 0
  for (const { range, node, history, sequence } of sorted) {
    writeRange(out, range, expected)
    expected = range.end + 1
    out.varint(nodes.indexOf(node))
    writeHistory(out, history)
    out.varint(sequence)
  }
  const sum = parts.reduce((total, part) => total + part.sequence, 0)
  return `${sum}-${out.finish().toString('base64url')}`
}

function writeRange(out: TokenWriter, range: HashRange, expected: number): void {
  const gap = range.begin - expected
  out.varint(gap < 0 ? -2 * gap - 1 : 2 * gap)
  const width = range.end - range.begin + 1
  const exponent = Math.log2(width)
  if (Number.isInteger(exponent)) {
    out.byte(exponent)
  } else {
    out.byte(EXPLICIT_WIDTH)
    out.varint(width)
  }
}

function writeHistory(out: TokenWriter, history: string): void {
  const hex = /^(?:[0-9a-f]{2})+$/.test(history)
  const bytes = Buffer.from(history, hex ? 'hex' : 'utf8')
  out.varint(bytes.length * 2 + (hex ? 1 : 0))
  out.bytes(bytes)
}

/**
 * Reads what clients send as `since`: a token with or without its number and its quotes, `0`, `now`.
 *
 * @param text the parameter as text; a JSON string may come with its quotes
 */
export function decodeSinceToken(text: string): Since {
  if (text.length > SINCE_TOKEN_LENGTH_MAX) return malformed(`longer than ${SINCE_TOKEN_LENGTH_MAX} characters`)
  const bare = text.length >= 2 && text.startsWith('"') && text.endsWith('"') ? text.slice(1, -1) : text
  if (bare === '0') return { kind: 'start' }
  if (bare === 'now') return { kind: 'now' }
  // The version byte makes every opaque part start with A, never with a digit.
  const opaque = /^(?:[0-9]+-)?(A[A-Za-z0-9_-]*)$/.exec(bare)?.[1]
  if (opaque === undefined) return malformed('not a token of this service')
  try {
    return { kind: 'vector', parts: readParts(Buffer.from(opaque, 'base64url')) }
  } catch (error) {
    if (error instanceof RangeError) return malformed(error.message)
    throw error
  }
}

function malformed(detail: string): Since {
  return { kind: 'malformed', reason: `Malformed sequence supplied in 'since' parameter: ${detail}` }
}

function readParts(bytes: Buffer): SincePart[] {
  const end = bytes.length - CHECKSUM_BYTES
  if (end < 1 || crc32(bytes.subarray(0, end)) !== bytes.readUInt32BE(end)) throw new RangeError('damaged')
  const reader = new ByteReader(bytes.subarray(0, end))
  if (reader.byte() !== VERSION) throw new RangeError('unknown version')
  const nodes = Array.from({ length: readCount(reader) }, () => text(reader.slice(reader.varint()), 'utf8'))
  const parts: SincePart[] = []
  let expected = 0
  for (let left = readCount(reader); left > 0; left--) {
    const range = readRange(reader, expected)
    expected = range.end + 1
    const node = nodes[reader.varint()]
    if (node === undefined) throw new RangeError('unknown node')
    const header = reader.varint()
    const history = text(reader.slice(Math.floor(header / 2)), header % 2 === 1 ? 'hex' : 'utf8')
    parts.push({ range, node, history, sequence: reader.varint() })
  }
  if (!reader.done) throw new RangeError('bytes behind the last part')
  return parts
}

function readCount(reader: ByteReader): number {
  const count = reader.varint()
  if (count > SINCE_PARTS_MAX) throw new RangeError('too many parts')
  return count
}

function readRange(reader: ByteReader, expected: number): HashRange {
  const zigzag = reader.varint()
  const begin = expected + (zigzag % 2 === 1 ? -(zigzag + 1) / 2 : zigzag / 2)
  const exponent = reader.byte()
  const width = exponent === EXPLICIT_WIDTH ? reader.varint() : 2 ** exponent
  const end = begin + width - 1
  if (begin < 0 || width < 1 || end > 0xffff_ffff) throw new RangeError('range outside of the ring')
  return { begin, end }
}

function text(bytes: Uint8Array, encoding: 'utf8' | 'hex'): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString(encoding)
}

class TokenWriter {
  #out = Buffer.allocUnsafe(256)
  #end = 0

  byte(value: number): void {
    this.#reserve(1)
    this.#out[this.#end++] = value
  }

  varint(value: number): void {
    this.#reserve(VARINT_BYTES_MAX)
    this.#end = writeVarint(this.#out, this.#end, value)
  }

  bytes(value: Uint8Array): void {
    this.#reserve(value.length)
    this.#out.set(value, this.#end)
    this.#end += value.length
  }

  /** Appends the checksum. */
  finish(): Buffer {
    this.#reserve(CHECKSUM_BYTES)
    this.#end = this.#out.writeUInt32BE(crc32(this.#out.subarray(0, this.#end)), this.#end)
    return this.#out.subarray(0, this.#end)
  }

  #reserve(length: number): void {
    if (this.#end + length <= this.#out.length) return
    const grown = Buffer.allocUnsafe(Math.max(this.#out.length * 2, this.#end + length))
    this.#out.copy(grown, 0, 0, this.#end)
    this.#out = grown
  }
}
