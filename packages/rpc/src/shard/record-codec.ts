/** Encodes and decodes the records that several verbs of shards share. */
import { asBuffer } from '@sectional/core'
import type {
  AttachmentRecord, Branch, DocumentRevision, HashRange, IdBound, IdScan, Leaf, LocalDocument, ReplicaCheckpoint,
  RevisionPath, ShardId, TrailExtension, TrailPoint,
} from '@sectional/core'
import type { PayloadReader, PayloadWriter } from '../schema/payload.ts'
import { count, ProtocolError, required } from '../schema/schema.ts'
import type { WireMessage } from '../schema/schema.ts'

export function encodeShard(shard: ShardId): object {
  return { incarnation: shard.incarnation, begin: shard.range.begin, end: shard.range.end }
}

export function decodeShard(message: WireMessage): ShardId {
  const range: HashRange = { begin: message.begin, end: message.end }
  if (range.begin > range.end) throw new ProtocolError('the shard range is reversed')
  return { incarnation: message.incarnation, range }
}

export function decodePath(message: WireMessage | null): RevisionPath {
  const path = required(message, 'path')
  return { start: count(path.start, 'generation'), ids: [...path.ids] }
}

export function decodeLeaves(messages: readonly WireMessage[]): Leaf[] {
  return messages.map(leaf => ({ revision: leaf.revision, deleted: leaf.deleted }))
}

export function decodeBound(message: WireMessage | null): IdBound | undefined {
  return message === null ? undefined : { id: message.id, inclusive: message.inclusive }
}

export function decodeIdScan(message: WireMessage): IdScan {
  const start = decodeBound(message.start)
  const end = decodeBound(message.end)
  return {
    ...(start && { start }),
    ...(end && { end }),
    descending: message.descending,
    ...(message.limit !== null && { limit: message.limit }),
  }
}

export function encodeRevision(revision: DocumentRevision, payload: PayloadWriter): object {
  return {
    id: revision.id, path: revision.path, deleted: revision.deleted, bodyLength: payload.add(revision.body),
    attachments: encodeAttachments(revision.attachments), purges: revision.purges, attempt: revision.attempt,
  }
}

export function decodeRevision(message: WireMessage, payload: PayloadReader): DocumentRevision {
  return {
    id: message.id, path: decodePath(message.path), deleted: message.deleted, body: payload.take(message.bodyLength),
    ...decodeAttachments(message), ...decodeAttempt(message),
    ...(message.purges.length > 0 && { purges: [...message.purges] }),
  }
}

/** Returns an object with the attempt, if there is one, to be spread into a revision or an edit. */
export function decodeAttempt({ attempt }: WireMessage): { readonly attempt?: number } {
  return attempt === 0 ? {} : { attempt: count(attempt, 'attempt') }
}

export function encodeAttachments(attachments: readonly AttachmentRecord[] | undefined): object[] | undefined {
  return attachments?.map(({ name, contentType, revpos, digest, blob, length, encoding, storedLength }) => ({
    name, contentType, revpos, length, storedLength, gzip: encoding === 'gzip',
    digest: Buffer.from(digest, 'base64'), blob: encodeBlobHash(blob),
  }))
}

/** Returns an object with the attachments, if there are any, to be spread into a record. */
export function decodeAttachments(message: WireMessage): { readonly attachments?: readonly AttachmentRecord[] } {
  if (message.attachments.length === 0) return {}
  return {
    attachments: message.attachments.map((attachment: WireMessage): AttachmentRecord => ({
      name: attachment.name,
      contentType: attachment.contentType,
      revpos: count(attachment.revpos, 'revpos'),
      digest: hashText(attachment.digest, digestBytes, 'base64'),
      blob: decodeBlobHash(attachment.blob),
      length: count(attachment.length, 'attachment length'),
      encoding: attachment.gzip ? 'gzip' : 'identity',
      storedLength: count(attachment.storedLength, 'stored attachment length'),
    })),
  }
}

const digestBytes = 16
const blobHashBytes = 32

export function encodeBlobHash(hash: string): Uint8Array {
  return Buffer.from(hash, 'hex')
}

export function decodeBlobHash(bytes: Uint8Array): string {
  return hashText(bytes, blobHashBytes, 'hex')
}

function hashText(bytes: Uint8Array, length: number, encoding: 'hex' | 'base64'): string {
  if (bytes.length !== length) throw new ProtocolError(`a hash has ${bytes.length} bytes, not ${length}`)
  return asBuffer(bytes).toString(encoding)
}

export function encodeLocal(document: LocalDocument, payload: PayloadWriter): object {
  const { id, revision, stamp, body } = document
  return { id, revision, stamp, bodyLength: payload.addOptional(body) }
}

export function decodeLocal(message: WireMessage, payload: PayloadReader): LocalDocument {
  return {
    id: message.id,
    revision: count(message.revision, 'local revision'),
    stamp: count(message.stamp, 'stamp'),
    body: payload.takeOptional(message.bodyLength) ?? null,
  }
}

export function decodeCheckpoint(message: WireMessage): ReplicaCheckpoint {
  return { history: message.history, sequence: count(message.sequence, 'checkpoint sequence') }
}

export function decodeTrail({ history, base, points }: WireMessage): TrailExtension {
  const from = decodeTrailPoint(required(base, 'base of a trail'))
  const trail: TrailExtension = { history, base: from, points: points.map(decodeTrailPoint) }
  let before = 0
  for (const { own } of trail.points) {
    if (own < before) throw new ProtocolError('the points of a trail are not in ascending order')
    before = own
  }
  return trail
}

function decodeTrailPoint({ theirs, own }: WireMessage): TrailPoint {
  return { theirs: count(theirs, 'sequence'), own: count(own, 'sequence') }
}

export function decodeBranch(message: WireMessage): Branch {
  const path = decodePath(message.path)
  const available: boolean[] = [...message.available]
  const tombstones: boolean[] = [...message.tombstones]
  if (available.length !== path.ids.length || tombstones.length !== path.ids.length) {
    throw new ProtocolError('a branch and its flags differ in length')
  }
  return { path, deleted: message.deleted, available, tombstones }
}
