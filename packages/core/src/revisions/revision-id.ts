/**
 * Revision ids: `{generation}-{hash}`. The hash is usually the 32 hex digits of an MD5 and denotes its 16 bytes. Any
 * other text, also the empty one, is kept as it is and denotes its UTF-8 bytes; replication and test suites send such
 * texts.
 */
import type { Leaf, RevisionPath } from '../contracts/shard-replica.ts'
import { ApiError } from '../errors.ts'

export interface Revision { readonly generation: number; readonly hash: string }

/** Longest hash text, in UTF-16 units. */
const revisionHashLengthMax = 1024

const hexHashLength = 32

/** @throws ApiError `invalid_rev_format` */
export function parseRevision(text: unknown): Revision {
  const revision = typeof text === 'string' ? readRevision(text) : null
  if (revision === null) throw new ApiError('invalid_rev_format')
  return revision
}

/** Like `parseRevision`, but returns null when the text is not a revision. */
export function readRevision(text: string): Revision | null {
  const dash = text.indexOf('-')
  if (dash < 1) return null
  let generation = 0
  for (let i = 0; i < dash; i++) {
    const digit = text.charCodeAt(i) - 48
    if (digit < 0 || digit > 9) return null
    generation = generation * 10 + digit
  }
  if (!Number.isSafeInteger(generation)) return null
  const hash = normalizeRevisionHash(text.slice(dash + 1))
  return hash === null ? null : { generation, hash }
}

/** Converts an MD5 to lower-case hex and keeps other texts; null: the text is too long, or UTF-8 cannot encode it. */
export function normalizeRevisionHash(text: string): string | null {
  if (isHexHash(text)) return text
  if (text.length > revisionHashLengthMax || !text.isWellFormed()) return null
  const lower = text.length === hexHashLength ? text.toLowerCase() : text
  return isHexHash(lower) ? lower : text
}

export function formatRevision(revision: Revision): string {
  return `${revision.generation}-${revision.hash}`
}

/** True for 32 lower-case hex digits. */
export function isHexHash(hash: string): boolean {
  if (hash.length !== hexHashLength) return false
  for (let i = 0; i < hexHashLength; i++) {
    const code = hash.charCodeAt(i)
    if (code < 48 || code > 102 || (code > 57 && code < 97)) return false
  }
  return true
}

/** Returns the bytes that a hash denotes. Revisions are compared, hashed and stored by these bytes. */
export function revisionHashBytes(hash: string): Buffer {
  return isHexHash(hash) ? Buffer.from(hash, 'hex') : Buffer.from(hash, 'utf8')
}

/** Compares two hashes by the bytes that they denote. */
export function compareRevisionHashes(a: string, b: string): number {
  if (a === b) return 0
  if (isHexHash(a) && isHexHash(b)) return a < b ? -1 : 1
  // A text whose UTF-8 equals the 16 bytes of a hex hash is a different revision; it comes after that one.
  return Buffer.compare(revisionHashBytes(a), revisionHashBytes(b)) || (isHexHash(a) ? -1 : 1)
}

/** Compares by generation, then by hash bytes. Both revisions must be well-formed. */
export function compareRevisions(a: string, b: string): number {
  if (a === b) return 0
  const left = parseRevision(a)
  const right = parseRevision(b)
  return left.generation - right.generation || compareRevisionHashes(left.hash, right.hash)
}

/** Orders the winner first: live before deleted, then the higher generation, then the greater hash. */
export function compareLeaves(a: Leaf, b: Leaf): number {
  if (a.deleted !== b.deleted) return a.deleted ? 1 : -1
  return compareRevisions(b.revision, a.revision)
}

/**
 * Adds the parent to a path from which stemming has removed all ancestors.
 *
 * @param parent null: not known, or the revision has none
 */
export function joinedToParent(path: RevisionPath, parent: string | null): RevisionPath {
  return parent === null || path.ids.length > 1
    ? path
    : { start: path.start, ids: [path.ids[0]!, readRevision(parent)!.hash] }
}
