/**
 * The one file that knows key bytes (docs/decisions/0001-storage-layout.md).
 *
 *     prefix(4, big-endian) kind(1) rest
 *
 *     prefix 0: the directory of the store
 *       v                                   format of the store
 *       n                                   next prefix to give out
 *       d incarnation NUL range             a hosted shard
 *       x prefix(4)                         a dropped shard whose keys are being cleared
 *       r blob(32) prefix(4) sequence(8)    the body at that place names the blob; stands as long as the body does
 *     prefix 1 and above: one shard each
 *       m                                   state of the replica: sequence and counters
 *       i id                                a document: leaves and revision tree
 *       s sequence(8)                       changes log: one row for each document, at its last change
 *       b sequence(8)                       the body stored at that sequence
 *       b sequence(8) chunk(2)              its further chunks, from 1
 *       l id                                a local document
 *       c history                           how far another replica's changes have been seen
 *       a history                           where the own changes stand in another replica's log
 *       p sequence(8)                       the purge log: which document the purge was of
 *       q id                                the recorded purges of a document
 *       g history                           how far another replica's purges have been applied
 *       t                                   which sequences were recorded when
 *       z partition                         counts and sizes of a partition
 *
 * Ids are raw UTF-8 and always last, so that no id reaches into another kind or shard whatever bytes it
 * holds, and byte order of keys is byte order of ids. Prefixes are fixed-length numbers given out once.
 */
import type { IdBound } from '@sectional/core'
import { asBuffer, ReplicaError } from '@sectional/core'
import type { Range } from '@sectional/runtime'

const prefixBytes = 4
const headBytes = prefixBytes + 1
const sequenceBytes = 8
export const prefixMax = 0xfffffffe

export type KeyKind = 'a' | 'm' | 'i' | 's' | 'b' | 'l' | 'c' | 'p' | 'q' | 'g' | 't' | 'z'
type DirectoryKind = 'v' | 'n' | 'd' | 'x' | 'r'

function head(prefix: number, kind: KeyKind | DirectoryKind, restBytes: number): Buffer {
  const key = Buffer.allocUnsafe(headBytes + restBytes)
  key.writeUInt32BE(prefix, 0)
  key[prefixBytes] = kind.charCodeAt(0)
  return key
}

/** @throws ReplicaError for text that UTF-8 cannot hold: two of those could be one key */
function textKey(prefix: number, kind: KeyKind | DirectoryKind, text: string): Buffer {
  if (!text.isWellFormed()) throw new ReplicaError('protocol', `${JSON.stringify(text)} is no Unicode text and cannot be an id`)
  const key = head(prefix, kind, Buffer.byteLength(text))
  key.write(text, headBytes)
  return key
}

function sequenceKey(prefix: number, kind: KeyKind, sequence: number, moreBytes = 0): Buffer {
  const key = head(prefix, kind, sequenceBytes + moreBytes)
  key.writeUInt32BE(Math.floor(sequence / 0x1_0000_0000), headBytes)
  key.writeUInt32BE(sequence >>> 0, headBytes + 4)
  return key
}

/** The bytes that follow every key that starts with `key`. */
function successor(key: Buffer): Buffer {
  const next = Buffer.allocUnsafe(key.length + 1)
  next.set(key)
  next[key.length] = 0
  return next
}

/** Keys of one shard. */
export class ShardKeys {
  readonly prefix: number

  constructor(prefix: number) {
    this.prefix = prefix
  }

  state(): Uint8Array { return head(this.prefix, 'm', 0) }
  document(id: string): Uint8Array { return textKey(this.prefix, 'i', id) }
  change(sequence: number): Uint8Array { return sequenceKey(this.prefix, 's', sequence) }
  localDocument(id: string): Uint8Array { return textKey(this.prefix, 'l', id) }
  checkpoint(history: string): Uint8Array { return textKey(this.prefix, 'c', history) }
  trail(history: string): Uint8Array { return textKey(this.prefix, 'a', history) }

  purge(sequence: number): Uint8Array { return sequenceKey(this.prefix, 'p', sequence) }
  purgesOf(id: string): Uint8Array { return textKey(this.prefix, 'q', id) }
  purgeCheckpoint(history: string): Uint8Array { return textKey(this.prefix, 'g', history) }
  timeSpans(): Uint8Array { return head(this.prefix, 't', 0) }
  partition(partition: string): Uint8Array { return textKey(this.prefix, 'z', partition) }

  body(sequence: number, chunk = 0): Uint8Array {
    if (chunk === 0) return sequenceKey(this.prefix, 'b', sequence)
    const key = sequenceKey(this.prefix, 'b', sequence, 2)
    key.writeUInt16BE(chunk, headBytes + sequenceBytes)
    return key
  }

  /** Everything of the shard. */
  all(): Range {
    return ShardKeys.shards(this.prefix, this.prefix)
  }

  kind(kind: KeyKind): Range {
    const lt = head(this.prefix, kind, 0)
    lt[prefixBytes] = lt[prefixBytes]! + 1
    return { gte: head(this.prefix, kind, 0), lt }
  }

  /** Ids from `low` to `high`, in byte order whatever the direction of the scan. */
  ids(kind: 'i' | 'l', low: IdBound | undefined, high: IdBound | undefined): Range {
    const whole = this.kind(kind)
    return {
      gte: low === undefined ? whole.gte : boundKey(this.prefix, kind, low, !low.inclusive),
      lt: high === undefined ? whole.lt : boundKey(this.prefix, kind, high, high.inclusive),
    }
  }

  /** Changes with a greater sequence. */
  changesAfter(sequence: number): Range {
    return this.#after('s', sequence)
  }

  /** Purges with a greater sequence. */
  purgesAfter(sequence: number): Range {
    return this.#after('p', sequence)
  }

  #after(kind: 's' | 'p', sequence: number): Range {
    const { gte, lt } = this.kind(kind)
    return { gte: sequence <= 0 ? gte : sequence >= Number.MAX_SAFE_INTEGER ? lt : sequenceKey(this.prefix, kind, Math.floor(sequence) + 1), lt }
  }

  /** Everything of the shards from one prefix to another. */
  static shards(first: number, last: number): Range {
    return { gte: prefixKey(first), lt: prefixKey(last + 1) }
  }

  static prefixOf(key: Uint8Array): number {
    return asBuffer(key).readUInt32BE(0)
  }

  static kindOf(key: Uint8Array): KeyKind {
    return String.fromCharCode(key[prefixBytes]!) as KeyKind
  }

  /** The id or history at the end of a key. */
  static text(key: Uint8Array): string {
    return asBuffer(key).toString('utf8', headBytes)
  }

  /** The bytes of the id at the end of a key. */
  static textBytes(key: Uint8Array): Uint8Array {
    return key.subarray(headBytes)
  }

  static sequence(key: Uint8Array): number {
    const bytes = asBuffer(key)
    return bytes.readUInt32BE(headBytes) * 0x1_0000_0000 + bytes.readUInt32BE(headBytes + 4)
  }

  /** Chunk number of a body key; 0 for its first record. */
  static bodyChunk(key: Uint8Array): number {
    return key.length === headBytes + sequenceBytes ? 0 : asBuffer(key).readUInt16BE(headBytes + sequenceBytes)
  }
}

/** Where a body lies that names a blob. */
export interface BlobReference { readonly prefix: number; readonly sequence: number }

const blobBytes = 32

/** Which bodies of any shard name a blob: in one place for the node, which stores content once. */
export const blobKeys = {
  reference: (blob: string, { prefix, sequence }: BlobReference): Uint8Array => {
    const key = head(0, 'r', blobBytes + prefixBytes + sequenceBytes)
    key.write(blob, headBytes, 'hex')
    key.writeUInt32BE(prefix, headBytes + blobBytes)
    key.writeUInt32BE(Math.floor(sequence / 0x1_0000_0000), headBytes + blobBytes + prefixBytes)
    key.writeUInt32BE(sequence >>> 0, headBytes + blobBytes + prefixBytes + 4)
    return key
  },
  references: (blob: string): Range => {
    const gte = head(0, 'r', blobBytes)
    gte.write(blob, headBytes, 'hex')
    return { gte, lt: Buffer.concat([gte, Buffer.alloc(prefixBytes + sequenceBytes + 1, 0xff)]) }
  },
  readReference: (key: Uint8Array): BlobReference => {
    const bytes = asBuffer(key)
    const at = headBytes + blobBytes
    return { prefix: bytes.readUInt32BE(at), sequence: bytes.readUInt32BE(at + prefixBytes) * 0x1_0000_0000 + bytes.readUInt32BE(at + prefixBytes + 4) }
  },
}

function boundKey(prefix: number, kind: KeyKind, bound: IdBound, after: boolean): Uint8Array {
  const key = textKey(prefix, kind, bound.id)
  return after ? successor(key) : key
}

function prefixKey(prefix: number): Uint8Array {
  const key = Buffer.allocUnsafe(prefixBytes)
  key.writeUInt32BE(prefix, 0)
  return key
}

/** Keys of the store's directory. */
export const directoryKeys = {
  shardName: (key: Uint8Array): string => asBuffer(key).toString('utf8', headBytes),
  format: (): Uint8Array => head(0, 'v', 0),
  nextPrefix: (): Uint8Array => head(0, 'n', 0),
  shard: (name: string): Uint8Array => textKey(0, 'd', name),
  dropped: (prefix: number): Uint8Array => {
    const key = head(0, 'x', prefixBytes)
    key.writeUInt32BE(prefix, headBytes)
    return key
  },
  shards: (): Range => ({ gte: head(0, 'd', 0), lt: head(0, 'd', 0).fill('e', prefixBytes) }),
  allDropped: (): Range => ({ gte: head(0, 'x', 0), lt: head(0, 'x', 0).fill('y', prefixBytes) }),
  droppedPrefix: (key: Uint8Array): number => asBuffer(key).readUInt32BE(headBytes),
}
