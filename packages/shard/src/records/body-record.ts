import { crc32 } from 'node:zlib'
import type { AttachmentRecord } from '@sectional/core'
import type { WriteBatch } from '@sectional/runtime'
import type { ShardKeys } from './key-layout.ts'
import { readAttachments, writeAttachments } from './attachment-list.ts'
import { DamagedRecordError } from './damaged-record.ts'

/** A longer body is split into chunks of this many bytes, because LevelDB then writes 8 MB in half the time. */
export const bodyChunkBytes = 256 * 1024
/**
 * The head of a body's first record: checksum(4) of length and body, length(4) of the body. The first chunk follows.
 */
const headBytes = 8
/** This bit of the length means that the list of attachments is stored before the JSON. */
const attachmentsFlag = 0x8000_0000

/** The content of a revision: its JSON and its attachments. */
export interface RevisionContent {
  readonly body: Uint8Array
  readonly attachments?: readonly AttachmentRecord[]
}

/** The bytes to be stored. `listed`: they begin with the list of attachments. */
export interface StoredBody { readonly bytes: Uint8Array; readonly listed: boolean }

export function storedBody({ body, attachments }: RevisionContent): StoredBody {
  if (attachments === undefined || attachments.length === 0) return { bytes: body, listed: false }
  return { bytes: Buffer.concat([writeAttachments(attachments), body]), listed: true }
}

/** Appends to a batch the records of the body that is stored at `sequence`. */
export function putBody(
  batch: WriteBatch, keys: ShardKeys, sequence: number, { bytes: body, listed }: StoredBody,
): void {
  const first = Buffer.allocUnsafe(headBytes + Math.min(body.length, bodyChunkBytes))
  const length = listed ? body.length + attachmentsFlag : body.length
  first.writeUInt32BE(checksum(length, body), 0)
  first.writeUInt32BE(length, 4)
  first.set(body.length > bodyChunkBytes ? body.subarray(0, bodyChunkBytes) : body, headBytes)
  batch.put(keys.body(sequence), first)
  for (let chunk = 1; chunk * bodyChunkBytes < body.length; chunk++) {
    batch.put(keys.body(sequence, chunk), body.subarray(chunk * bodyChunkBytes, (chunk + 1) * bodyChunkBytes))
  }
}

/** Returns the number of chunks of a body besides its first record. */
export function furtherChunks(bodyBytes: number): number {
  return Math.max(0, Math.ceil(bodyBytes / bodyChunkBytes) - 1)
}

/** Returns the same number, read from the body's first record. @throws DamagedRecordError */
export function furtherChunksOf(sequence: number, first: Uint8Array): number {
  if (first.length < headBytes) throw new DamagedRecordError(`the body at sequence ${sequence} is damaged: too short`)
  return furtherChunks(readUInt32(first, 4) % attachmentsFlag)
}

export function deleteBody(batch: WriteBatch, keys: ShardKeys, sequence: number, chunks: number): void {
  for (let chunk = 0; chunk <= chunks; chunk++) batch.delete(keys.body(sequence, chunk))
}

/** @throws DamagedRecordError when a chunk is missing or the checksum differs */
export function joinBody(
  sequence: number, first: Uint8Array, further: readonly (Uint8Array | undefined)[],
): RevisionContent {
  const start = first.subarray(headBytes)
  const body = further.length === 0
    ? start
    : Buffer.concat([start, ...further.map(chunk => chunk ?? new Uint8Array(0))])
  const length = readUInt32(first, 4)
  if (body.length !== length % attachmentsFlag || checksum(length, body) !== readUInt32(first, 0)) {
    throw new DamagedRecordError(`the body at sequence ${sequence} is damaged: its checksum differs`)
  }
  return length < attachmentsFlag ? { body } : readAttachments(body)
}

/**
 * Computes the checksum of a body. It covers the length, because the flag in it determines the meaning of the bytes.
 * The checksum of a record of zeros is not zero.
 */
function checksum(length: number, body: Uint8Array): number {
  return crc32(body, ~length >>> 0)
}

function readUInt32(bytes: Uint8Array, offset: number): number {
  return (bytes[offset]! << 24 | bytes[offset + 1]! << 16 | bytes[offset + 2]! << 8 | bytes[offset + 3]!) >>> 0
}
