import type { Leaf } from '@sectional/core'
import { isHexHash } from '@sectional/core'
import { DamagedRecordError } from './damaged-record.ts'
import type { ByteReader } from './byte-reader.ts'
import type { ByteWriter } from './byte-writer.ts'

/** A leaf as it is stored in the record of a document and in the changes log. */
export interface StoredLeaf {
  readonly revision: string
  readonly deleted: boolean
  /** The sequence at which the leaf's body is stored. */
  readonly bodySequence: number
  /** Bytes of the body's JSON. */
  readonly bodyBytes: number
  /**
   * The attempt that made the leaf (`DocumentEdit.attempt`). Absent: there was none, or an earlier version of this
   * program stored the leaf.
   */
  readonly attempt?: number
}

const deletedFlag = 1
const hexHashFlag = 2
const attemptFlag = 4
const hashBytes = 16

/**
 * Appends leaves, which must be in order, winner first. Hashes other than MD5 in lower-case hex are written as text.
 */
export function writeLeaves(writer: ByteWriter, leaves: readonly StoredLeaf[]): void {
  writer.integer(leaves.length)
  for (const leaf of leaves) {
    const dash = leaf.revision.indexOf('-')
    const hash = leaf.revision.slice(dash + 1)
    const isHex = isHexHash(hash)
    writer.byte(
      (leaf.deleted ? deletedFlag : 0) | (isHex ? hexHashFlag : 0) | (leaf.attempt === undefined ? 0 : attemptFlag),
    )
    writer.integer(Number(leaf.revision.slice(0, dash)))
    if (isHex) writer.hex(hash)
    else writer.text(hash)
    writer.integer(leaf.bodySequence)
    writer.integer(leaf.bodyBytes)
    if (leaf.attempt !== undefined) writer.integer(leaf.attempt)
  }
}

export function readLeaves(reader: ByteReader): [StoredLeaf, ...StoredLeaf[]] {
  const count = reader.integer()
  const leaves: StoredLeaf[] = []
  for (let index = 0; index < count; index++) {
    const flags = reader.byte()
    const generation = reader.integer()
    const hash = (flags & hexHashFlag) === 0 ? reader.text() : reader.hex(hashBytes)
    const revision = `${generation}-${hash}`
    const deleted = (flags & deletedFlag) !== 0
    const bodySequence = reader.integer()
    const bodyBytes = reader.integer()
    if ((flags & attemptFlag) === 0) leaves.push({ revision, deleted, bodySequence, bodyBytes })
    else leaves.push({ revision, deleted, bodySequence, bodyBytes, attempt: reader.integer() })
  }
  if (leaves.length === 0) throw new DamagedRecordError('a document record has no leaf')
  return leaves as [StoredLeaf, ...StoredLeaf[]]
}

/** Converts leaves to the form of the contract. */
export function asLeaves(leaves: readonly StoredLeaf[]): Leaf[] {
  const shown: Leaf[] = []
  for (const { revision, deleted } of leaves) shown.push({ revision, deleted })
  return shown
}
