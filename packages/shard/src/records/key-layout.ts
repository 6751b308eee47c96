/**
 * The one file that knows key bytes (docs/decisions/0001-storage-layout.md).
 *
 *     prefix(4) kind(1) rest
 *
 *     prefix 0: the directory of the store
 *       v                                   format of the store
 *       n                                   next prefix to give out
 *       u                                   shards with lesser prefixes may lack writes
 *       d incarnation NUL range             a hosted shard
 *       x prefix(4)                         a dropped shard whose keys are being cleared
 *       r blob(64) prefix(4) sequence(8)    the body at that place names the blob; stands as long as the body does
 *     prefix 1 and above: one shard each
 *       m                                   state of the replica: sequence and counters
 *       i id                                a document: leaves and revision tree
 *       s sequence(8)                       changes log: one row for each document, at its last change, and one for
 *                                           each recorded purge that left nothing of its document
 *       b sequence(8)                       the body stored at that sequence
 *       b sequence(8) chunk(4)              its further chunks, from 1
 *       l id                                a local document
 *       c history                           how far another replica's changes have been seen
 *       a history                           where the own changes stand in another replica's log
 *       p sequence(8)                       the purge log: which document the purge was of
 *       q id                                the recorded purges of a document
 *       g history                           how far another replica's purges have been applied
 *       t                                   which sequences were recorded when
 *       z partition                         counts and sizes of a partition
 *
 * Lengths are characters; numbers are digits of 7 bits (`keyWord`, `keyNumber`), a blob is its hash in hex. Ids are
 * always last, so that no id reaches into another kind or shard whatever it holds, and the order of keys is that of
 * ids. Prefixes are given out once.
 */
import type { IdBound } from '@sectional/core'
import { ReplicaError } from '@sectional/core'
import { keyNumber, keyWord, keyWordMax, lastKey, readKeyNumber, readKeyWord } from '@sectional/runtime'
import type { Range } from '@sectional/runtime'

const prefixLength = 4
const headLength = prefixLength + 1
const sequenceLength = 8
export const prefixMax = keyWordMax - 1

export type KeyKind = 'a' | 'm' | 'i' | 's' | 'b' | 'l' | 'c' | 'p' | 'q' | 'g' | 't' | 'z'
type DirectoryKind = 'c' | 'v' | 'n' | 'd' | 'x' | 'r' | 'u' | 'i'

/** @throws ReplicaError for text that UTF-8 cannot hold: two of those could be one key */
function textKey(head: string, text: string): string {
  if (!text.isWellFormed()) {
    throw new ReplicaError('protocol', `${JSON.stringify(text)} is no Unicode text and cannot be an id`)
  }
  return head + text
}

/** Keys of one shard. */
export class ShardKeys {
  readonly prefix: number
  readonly #start: string

  constructor(prefix: number) {
    this.prefix = prefix
    this.#start = keyWord(prefix)
  }

  state(): string { return this.#head('m') }
  document(id: string): string { return this.#text('i', id) }
  change(sequence: number): string { return this.#sequence('s', sequence) }
  localDocument(id: string): string { return this.#text('l', id) }
  checkpoint(history: string): string { return this.#text('c', history) }
  trail(history: string): string { return this.#text('a', history) }

  purge(sequence: number): string { return this.#sequence('p', sequence) }
  purgesOf(id: string): string { return this.#text('q', id) }
  purgeCheckpoint(history: string): string { return this.#text('g', history) }
  timeSpans(): string { return this.#head('t') }
  partition(partition: string): string { return this.#text('z', partition) }

  body(sequence: number, chunk = 0): string {
    const first = this.#sequence('b', sequence)
    return chunk === 0 ? first : first + keyWord(chunk)
  }

  /** Everything of the shard. */
  all(): Range {
    return ShardKeys.shards(this.prefix, this.prefix)
  }

  kind(kind: KeyKind): Range {
    return { gte: this.#head(kind), lt: this.#start + String.fromCharCode(kind.charCodeAt(0) + 1) }
  }

  /** Ids from `low` to `high`, in byte order whatever the direction of the scan. */
  ids(kind: 'i' | 'l', low: IdBound | undefined, high: IdBound | undefined): Range {
    const whole = this.kind(kind)
    return {
      gte: low === undefined ? whole.gte : this.#bound(kind, low, !low.inclusive),
      lt: high === undefined ? whole.lt : this.#bound(kind, high, high.inclusive),
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
    return { gte: sequence <= 0 ? gte
      : sequence >= Number.MAX_SAFE_INTEGER ? lt
      : this.#sequence(kind, Math.floor(sequence) + 1), lt }
  }

  #head(kind: KeyKind): string {
    return this.#start + kind
  }

  #text(kind: KeyKind, text: string): string {
    return textKey(this.#head(kind), text)
  }

  #sequence(kind: KeyKind, sequence: number): string {
    return this.#head(kind) + keyNumber(sequence)
  }

  /** @param after the bound lies behind the id itself */
  #bound(kind: KeyKind, { id }: IdBound, after: boolean): string {
    const key = this.#text(kind, id)
    return after ? `${key}\0` : key
  }

  /** Everything of the shards from one prefix to another. */
  static shards(first: number, last: number): Range {
    return { gte: keyWord(first), lt: keyWord(last + 1) }
  }

  static prefixOf(key: string): number {
    return readKeyWord(key, 0)
  }

  static kindOf(key: string): KeyKind {
    return key.charAt(prefixLength) as KeyKind
  }

  /** The id or history at the end of a key. */
  static text(key: string): string {
    return key.slice(headLength)
  }

  static sequence(key: string): number {
    return readKeyNumber(key, headLength)
  }

  /** Chunk number of a body key; 0 for its first record. */
  static bodyChunk(key: string): number {
    return key.length === headLength + sequenceLength ? 0 : readKeyWord(key, headLength + sequenceLength)
  }
}

/** Where a body lies that names a blob. */
export interface BlobReference { readonly prefix: number; readonly sequence: number }

const blobLength = 64

function directoryHead(kind: DirectoryKind): string {
  return keyWord(0) + kind
}

/** Which bodies of any shard name a blob: in one place for the node, which stores content once. */
export const blobKeys = {
  reference: (blob: string, { prefix, sequence }: BlobReference): string =>
    directoryHead('r') + blob + keyWord(prefix) + keyNumber(sequence),
  references: (blob: string): Range => ({ gte: directoryHead('r') + blob, lt: directoryHead('r') + blob + lastKey }),
  readReference: (key: string): BlobReference => {
    const at = headLength + blobLength
    return { prefix: readKeyWord(key, at), sequence: readKeyNumber(key, at + prefixLength) }
  },
}

/** Keys of the store's directory. */
export const directoryKeys = {
  shardName: (key: string): string => ShardKeys.text(key),
  format: (): string => directoryHead('v'),
  nextPrefix: (): string => directoryHead('n'),
  suspectBelow: (): string => directoryHead('u'),
  incomplete: (): string => directoryHead('i'),
  closedInOrder: (): string => directoryHead('c'),
  shard: (name: string): string => textKey(directoryHead('d'), name),
  dropped: (prefix: number): string => directoryHead('x') + keyWord(prefix),
  shards: (): Range => ({ gte: directoryHead('d'), lt: directoryHead('d') + lastKey }),
  allDropped: (): Range => ({ gte: directoryHead('x'), lt: directoryHead('x') + lastKey }),
  droppedPrefix: (key: string): number => readKeyWord(key, headLength),
}
