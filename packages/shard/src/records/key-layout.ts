/**
 * The layout of keys. No other file depends on it (docs/decisions/0001-storage-layout.md).
 *
 *     prefix(4) kind(1) rest
 *
 *     prefix 0: the directory of the store
 *       v                                   format of the store
 *       n                                   next prefix to give out
 *       u                                   shards with lesser prefixes may lack writes
 *       i                                   present while entries of the directory may be missing
 *       c                                   present when the store was closed in order
 *       d incarnation NUL range             a hosted shard
 *       x prefix(4)                         a dropped shard whose keys are being cleared
 *       r blob(64) prefix(4) sequence(8)    a reference to the blob by the body at that key; removed with the body
 *     prefix 1 and above: one shard each
 *       m                                   state of the replica: sequence and counters
 *       i id                                a document: leaves and revision tree
 *       s sequence(8)                       changes log: one row for each document, at its last change, and one for
 *                                           each recorded purge that removed its document completely
 *       b sequence(8)                       the body stored at that sequence
 *       b sequence(8) chunk(4)              its further chunks, from 1
 *       l id                                a local document
 *       c history                           the sequence up to which another replica's changes have been stored
 *       a history                           the trail of the replica's own changes in another replica's changes
 *       p sequence(8)                       the purge log: the id of the purged document
 *       q id                                the recorded purges of a document
 *       g history                           the sequence up to which another replica's purges have been applied
 *       t                                   the time spans in which sequences were recorded
 *       z partition                         counts and sizes of a partition
 *
 * Lengths are in characters. Numbers are written in digits of 7 bits (`keyWord`, `keyNumber`), and a blob as its hash
 * in hex. An id is always the last part of a key, so that no id can produce a key of another kind or shard, and the
 * keys have the order of the ids. A prefix is never used again.
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

/** @throws ReplicaError for text that UTF-8 cannot encode, because two such texts could have the same key */
function textKey(head: string, text: string): string {
  if (!text.isWellFormed()) {
    throw new ReplicaError('protocol', `${JSON.stringify(text)} is not valid Unicode text and cannot be an id`)
  }
  return head + text
}

/** The keys of one shard. */
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

  /** Returns the range of the bodies from one sequence to another, both included, with all their chunks. */
  bodies(first: number, last: number): Range {
    return { gte: this.body(first), lt: this.body(last + 1) }
  }

  /** Returns the range of all keys of the shard. */
  all(): Range {
    return ShardKeys.shards(this.prefix, this.prefix)
  }

  kind(kind: KeyKind): Range {
    return { gte: this.#head(kind), lt: this.#start + String.fromCharCode(kind.charCodeAt(0) + 1) }
  }

  /** Returns the range of ids from `low` to `high`. `low` is the lesser id also for a descending scan. */
  ids(kind: 'i' | 'l', low: IdBound | undefined, high: IdBound | undefined): Range {
    const whole = this.kind(kind)
    return {
      gte: low === undefined ? whole.gte : this.#bound(kind, low, !low.inclusive),
      lt: high === undefined ? whole.lt : this.#bound(kind, high, high.inclusive),
    }
  }

  /** Returns the range of the changes with a greater sequence. */
  changesAfter(sequence: number): Range {
    return this.#after('s', sequence)
  }

  /** Returns the range of the purges with a greater sequence. */
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

  /** @param after whether the bound is after the id itself */
  #bound(kind: KeyKind, { id }: IdBound, after: boolean): string {
    const key = this.#text(kind, id)
    return after ? `${key}\0` : key
  }

  /** Returns the range of all keys of the shards from one prefix to another, both included. */
  static shards(first: number, last: number): Range {
    return { gte: keyWord(first), lt: keyWord(last + 1) }
  }

  static prefixOf(key: string): number {
    return readKeyWord(key, 0)
  }

  static kindOf(key: string): KeyKind {
    return key.charAt(prefixLength) as KeyKind
  }

  /** Returns the id or history at the end of a key. */
  static text(key: string): string {
    return key.slice(headLength)
  }

  static sequence(key: string): number {
    return readKeyNumber(key, headLength)
  }

  /** Returns the chunk number of a body's key; 0 for its first record. */
  static bodyChunk(key: string): number {
    return key.length === headLength + sequenceLength ? 0 : readKeyWord(key, headLength + sequenceLength)
  }
}

/** The shard and the sequence of a body that refers to a blob. */
export interface BlobReference { readonly prefix: number; readonly sequence: number }

const blobLength = 64

function directoryHead(kind: DirectoryKind): string {
  return keyWord(0) + kind
}

/** The keys of references from bodies to blobs. They are common to all shards, since a node stores each blob once. */
export const blobKeys = {
  reference: (blob: string, { prefix, sequence }: BlobReference): string =>
    directoryHead('r') + blob + keyWord(prefix) + keyNumber(sequence),
  references: (blob: string): Range => ({ gte: directoryHead('r') + blob, lt: directoryHead('r') + blob + lastKey }),
  readReference: (key: string): BlobReference => {
    const at = headLength + blobLength
    return { prefix: readKeyWord(key, at), sequence: readKeyNumber(key, at + prefixLength) }
  },
}

/** The keys of the store's directory. */
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
