/**
 * A since-token is a position in a database's changes, a vector over its shards
 * (docs/reference/changes.md#since-tokens).
 *
 *     token   N "-" base64url(bytes)
 *     N       the sum of the highest sequence of each range, for human readers; ignored when a token is decoded
 *     bytes   1, dictionary of nodes, varint parts, part.., CRC-32 of all before (big endian)
 *     part    range, varint node, history, varint sequence
 *     range   zigzag varint of begin - (end of the part before + 1), then log2 of the width in a byte, or 64 and
 *             varint width
 *     history varint 2 * length + 1 if the bytes are the text's hex digits, bytes
 *     dictionary   varint count, each varint length and UTF-8
 *
 * A token must fit into a URL. With 8 shards on 3 nodes it has about 250 characters with one part for each range, and
 * 750 with three parts; most of them encode histories.
 */
import { crc32 } from 'node:zlib'
import type { HashRange } from '../contracts/shard-replica.ts'
import { ByteReader, varintBytesMax, varintLength, writeVarint } from '../encoding/varint.ts'
import { compareRanges } from '../sharding/hash-ring.ts'
import { parseIsoTime } from '../time/utc-time.ts'

/**
 * The reader has read all changes of this range up to `sequence` of the replica with that `history`. All parts of a
 * range hold at once: the first is of the replica that was read, the others are of replicas whose changes it had.
 */
export interface SincePart {
  readonly range: HashRange
  /** The node of that replica; empty: not known. It is only a hint, because `history` identifies the replica. */
  readonly node: string
  readonly history: string
  readonly sequence: number
}

export type Since =
  | { readonly kind: 'start' }
  | { readonly kind: 'now' }
  /** The changes recorded from `time` (milliseconds since 1970) on; earlier changes may be included. */
  | { readonly kind: 'time'; readonly time: number }
  | { readonly kind: 'vector'; readonly parts: readonly SincePart[] }
  /** The request is answered with status 400. `reason` is for logs. */
  | { readonly kind: 'malformed'; readonly reason: string }

/** Longest token that is decoded, in characters. */
const sinceTokenLengthMax = 262_144
/** Most parts of one token. */
export const sincePartsMax = 8192

const tokenVersion = 1
const explicitWidth = 64
const checksumBytes = 4
const noBytes = Buffer.alloc(0)

/** @throws RangeError with more than `sincePartsMax` parts */
export function encodeSinceToken(parts: readonly SincePart[]): string {
  const sorted = parts.toSorted((a, b) => compareRanges(a.range, b.range))
  const vector = new SinceVector(1)
  vector.set(0, sorted)
  return vector.token()
}

interface Segment {
  parts: readonly SincePart[]
  readonly bytes: Buffer
  /** Offset in `bytes` of the sequence of the first part. */
  readonly sequenceAt: number
  /** The segment's share of the number before the token's dash. */
  sum: number
  /** Offset of the segment in the assembled token; -1: it was not assembled yet. */
  offset: number
}

/**
 * A token that a feed updates as it advances. It has places in ascending order of their ranges; usually one place is
 * one range. An update encodes only the changed place, and only its sequence when the feed advanced in the same
 * replica.
 */
export class SinceVector {
  readonly #segments: (Segment | undefined)[]
  readonly #histories = new Map<string, Buffer>()
  readonly #writer = new TokenWriter()
  readonly #assembly = new TokenWriter()
  #nodes: readonly string[] = []
  #head: Buffer = noBytes
  #partCount = 0
  /** True when the head must be rebuilt, because nodes or the number of parts have changed. */
  #stale = false
  /** True when `#assembly` holds the whole token except for its checksum. */
  #assembled = false
  #sum = 0
  #token: string | undefined

  /** @param places the number of places, each with the parts of one range or of several ranges */
  constructor(places: number) {
    this.#segments = new Array<Segment | undefined>(places)
  }

  /** @throws RangeError with more than `sincePartsMax` parts in all */
  set(place: number, parts: readonly SincePart[]): void {
    this.#token = undefined
    const before = this.#segments[place]
    if (before !== undefined && this.#assembled && this.#moveOn(before, parts)) return
    this.#partCount += parts.length - (before?.parts.length ?? 0)
    if (this.#partCount > sincePartsMax) throw new RangeError(`a since-token holds at most ${sincePartsMax} parts`)
    this.#stale ||= before?.parts.length !== parts.length || !hasSameNodes(before.parts, parts)
    const segment = this.#stale
      ? { parts, bytes: noBytes, sequenceAt: 0, sum: 0, offset: -1 }
      : this.#segment(parts, this.#endBefore(place))
    this.#segments[place] = segment
    this.#assembled &&= before !== undefined && !this.#stale && before.bytes.length === segment.bytes.length
    if (!this.#assembled) return
    segment.offset = before!.offset
    this.#assembly.overwrite(segment.offset, segment.bytes)
    this.#sum += segment.sum - before!.sum
  }

  token(): string {
    if (this.#token !== undefined) return this.#token
    if (this.#stale) this.#rebuild()
    if (!this.#assembled) this.#assemble()
    return this.#token = `${this.#sum}-${this.#assembly.checked().toString('base64url')}`
  }

  /** Overwrites the first part's sequence in place. False: other things changed, or the new sequence is longer. */
  #moveOn(segment: Segment, parts: readonly SincePart[]): boolean {
    const from = segment.parts[0]
    const to = parts[0]
    if (from === undefined || to === undefined || parts.length !== segment.parts.length) return false
    if (to.range !== from.range || to.history !== from.history || to.node !== from.node) return false
    for (let index = 1; index < parts.length; index++) if (parts[index] !== segment.parts[index]) return false
    if (varintLength(to.sequence) !== varintLength(from.sequence)) return false
    const sum = sumOf(parts)
    this.#sum += sum - segment.sum
    segment.sum = sum
    segment.parts = parts
    writeVarint(segment.bytes, segment.sequenceAt, to.sequence)
    this.#assembly.overwriteVarint(segment.offset + segment.sequenceAt, to.sequence)
    return true
  }

  #assemble(): void {
    const out = this.#assembly.start()
    out.bytes(this.#head)
    this.#sum = 0
    for (const segment of this.#segments) {
      if (segment === undefined) continue
      segment.offset = out.length
      out.bytes(segment.bytes)
      this.#sum += segment.sum
    }
    this.#assembled = true
  }

  #rebuild(): void {
    const all = this.#segments.flatMap(segment => segment?.parts ?? [])
    this.#stale = false
    this.#nodes = [...new Set(all.map(part => part.node))].sort()
    this.#histories.clear()
    for (const { history } of all) {
      if (!this.#histories.has(history)) this.#histories.set(history, encodeHistory(history))
    }
    const head = new TokenWriter()
    head.byte(tokenVersion)
    head.varint(this.#nodes.length)
    for (const node of this.#nodes) {
      const name = Buffer.from(node, 'utf8')
      head.varint(name.length)
      head.bytes(name)
    }
    head.varint(all.length)
    this.#head = Buffer.from(head.written())
    for (const [place, segment] of this.#segments.entries()) {
      if (segment !== undefined) this.#segments[place] = this.#segment(segment.parts, this.#endBefore(place))
    }
  }

  #segment(parts: readonly SincePart[], end: number): Segment {
    const out = this.#writer.start()
    let expected = end
    let sequenceAt = 0
    for (const { range, node, history, sequence } of parts) {
      writeRange(out, range, expected)
      expected = range.end + 1
      out.varint(this.#nodes.indexOf(node))
      let encoded = this.#histories.get(history)
      if (encoded === undefined) this.#histories.set(history, encoded = encodeHistory(history))
      out.bytes(encoded)
      sequenceAt ||= out.length
      out.varint(sequence)
    }
    return { parts, bytes: Buffer.from(out.written()), sequenceAt, sum: sumOf(parts), offset: -1 }
  }

  #endBefore(place: number): number {
    for (let before = place - 1; before >= 0; before--) {
      const last = this.#segments[before]?.parts.at(-1)
      if (last !== undefined) return last.range.end + 1
    }
    return 0
  }
}

/**
 * Whether both name the same nodes. The dictionary must list exactly these, so that equal positions have equal tokens.
 */
function hasSameNodes(before: readonly SincePart[], after: readonly SincePart[]): boolean {
  return after.every(({ node }, index) => node === before[index]!.node || before.some(part => part.node === node))
    && before.every(({ node }, index) => node === after[index]!.node || after.some(part => part.node === node))
}

/** Adds up the highest sequence of each range, so that the number does not depend on which replica comes first. */
function sumOf(parts: readonly SincePart[]): number {
  let sum = 0
  let highest = 0
  let range: HashRange | undefined
  for (const part of parts) {
    if (range !== undefined && range !== part.range && compareRanges(range, part.range) !== 0) {
      sum += highest
      highest = 0
    }
    range = part.range
    highest = Math.max(highest, part.sequence)
  }
  return sum + highest
}

function writeRange(out: TokenWriter, range: HashRange, expected: number): void {
  const gap = range.begin - expected
  out.varint(gap < 0 ? -2 * gap - 1 : 2 * gap)
  const width = range.end - range.begin + 1
  const exponent = Math.log2(width)
  if (Number.isInteger(exponent)) {
    out.byte(exponent)
  } else {
    out.byte(explicitWidth)
    out.varint(width)
  }
}

function encodeHistory(history: string): Buffer {
  const out = new TokenWriter()
  const hex = /^(?:[0-9a-f]{2})+$/.test(history)
  const bytes = Buffer.from(history, hex ? 'hex' : 'utf8')
  out.varint(bytes.length * 2 + (hex ? 1 : 0))
  out.bytes(bytes)
  return Buffer.from(out.written())
}

/**
 * Reads the parameter `since`: a token, with or without its number; `0`; the word `now`; or a time such as
 * `2025-07-21T16:00:00Z`.
 *
 * @param text the parameter as text. A token or `0` may be in quotes, as a JSON string.
 */
export function decodeSinceToken(text: string): Since {
  if (text.length > sinceTokenLengthMax) return malformed(`longer than ${sinceTokenLengthMax} characters`)
  const bare = text.length >= 2 && text.startsWith('"') && text.endsWith('"') ? text.slice(1, -1) : text
  if (bare === '0') return { kind: 'start' }
  if (text === 'now') return { kind: 'now' }
  const time = parseIsoTime(text)
  if (time !== null) return { kind: 'time', time }
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
  const end = bytes.length - checksumBytes
  if (end < 1 || crc32(bytes.subarray(0, end)) !== bytes.readUInt32BE(end)) throw new RangeError('damaged')
  const reader = new ByteReader(bytes.subarray(0, end))
  if (reader.byte() !== tokenVersion) throw new RangeError('unknown version')
  const nodes = Array.from({ length: readCount(reader) }, () => reader.text(reader.varint(), 'utf8'))
  const parts: SincePart[] = []
  let expected = 0
  for (let left = readCount(reader); left > 0; left--) {
    const range = readRange(reader, expected)
    expected = range.end + 1
    const node = nodes[reader.varint()]
    if (node === undefined) throw new RangeError('unknown node')
    const header = reader.varint()
    const history = reader.text(Math.floor(header / 2), header % 2 === 1 ? 'hex' : 'utf8')
    parts.push({ range, node, history, sequence: reader.varint() })
  }
  if (!reader.done) throw new RangeError('there are bytes after the last part')
  return parts
}

function readCount(reader: ByteReader): number {
  const count = reader.varint()
  if (count > sincePartsMax) throw new RangeError('too many parts')
  return count
}

function readRange(reader: ByteReader, expected: number): HashRange {
  const zigzag = reader.varint()
  const begin = expected + (zigzag % 2 === 1 ? -(zigzag + 1) / 2 : zigzag / 2)
  const exponent = reader.byte()
  const width = exponent === explicitWidth ? reader.varint() : 2 ** exponent
  const end = begin + width - 1
  if (begin < 0 || width < 1 || end > 0xffff_ffff) throw new RangeError('range outside of the ring')
  return { begin, end }
}

class TokenWriter {
  #out = Buffer.allocUnsafe(256)
  #end = 0

  /** Removes the bytes that were written before. */
  start(): this {
    this.#end = 0
    return this
  }

  byte(value: number): void {
    this.#reserve(1)
    this.#out[this.#end++] = value
  }

  varint(value: number): void {
    this.#reserve(varintBytesMax)
    this.#end = writeVarint(this.#out, this.#end, value)
  }

  bytes(value: Uint8Array): void {
    this.#reserve(value.length)
    this.#out.set(value, this.#end)
    this.#end += value.length
  }

  /** Returns the written bytes. The next write makes them invalid. */
  written(): Buffer {
    return this.#out.subarray(0, this.#end)
  }

  get length(): number {
    return this.#end
  }

  /** Replaces the bytes at an offset. */
  overwrite(offset: number, value: Uint8Array): void {
    this.#out.set(value, offset)
  }

  /** Replaces a varint by one of the same length. */
  overwriteVarint(offset: number, value: number): void {
    writeVarint(this.#out, offset, value)
  }

  /** Returns the written bytes with their checksum after them. The next write makes them invalid. */
  checked(): Buffer {
    this.#reserve(checksumBytes)
    const end = this.#out.writeUInt32BE(crc32(this.written()), this.#end)
    return this.#out.subarray(0, end)
  }

  #reserve(length: number): void {
    if (this.#end + length <= this.#out.length) return
    const grown = Buffer.allocUnsafe(Math.max(this.#out.length * 2, this.#end + length))
    this.#out.copy(grown, 0, 0, this.#end)
    this.#out = grown
  }
}
