import type { LocalDocument } from '@sectional/core'
import { sealBytes, sealRecord } from '@sectional/runtime'
import { ByteWriter } from './byte-writer.ts'
import { ByteReader } from './byte-reader.ts'
import { checkSeal } from './damaged-record.ts'

/** A local document with its sequence. Tombstones (`body: null`) are kept, so that replicas converge. */
export interface LocalRecord extends LocalDocument { readonly sequence: number }

const deletedFlag = 1

export function encodeLocal(record: LocalRecord): Uint8Array {
  const writer = new ByteWriter(sealBytes)
  writer.byte(record.body === null ? deletedFlag : 0)
  writer.integer(record.sequence)
  writer.integer(record.stamp)
  writer.integer(record.revision)
  if (record.body !== null) writer.bytes(record.body)
  return sealRecord(writer.finish())
}

export function decodeLocal(id: string, bytes: Uint8Array): LocalRecord {
  checkSeal(bytes, `local document ${id}`)
  const reader = new ByteReader(bytes, sealBytes)
  const flags = reader.byte()
  const sequence = reader.integer()
  const stamp = reader.integer()
  const revision = reader.integer()
  return { id, sequence, stamp, revision, body: (flags & deletedFlag) === 0 ? reader.rest() : null }
}

/**
 * Whether `left` replaces `right` when replicas have different versions. The greater stamp decides, then the greater
 * revision, then the greater body bytes; a tombstone is less than any body.
 */
export function supersedesLocal(left: LocalDocument, right: LocalDocument): boolean {
  if (left.stamp !== right.stamp) return left.stamp > right.stamp
  if (left.revision !== right.revision) return left.revision > right.revision
  if (left.body === null || right.body === null) return left.body !== null && right.body === null
  return Buffer.compare(left.body, right.body) > 0
}
