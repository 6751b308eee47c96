/** The parts that several shard verbs share, both ways. */
import type { Branch, DocumentRevision, HashRange, IdBound, Leaf, LocalDocument, ReplicaCheckpoint, RevisionPath, ShardId } from '@sectional/core'
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

export function encodeRevision(revision: DocumentRevision, payload: PayloadWriter): object {
  return { id: revision.id, path: revision.path, deleted: revision.deleted, bodyLength: payload.add(revision.body) }
}

export function decodeRevision(message: WireMessage, payload: PayloadReader): DocumentRevision {
  return { id: message.id, path: decodePath(message.path), deleted: message.deleted, body: payload.take(message.bodyLength) }
}

export function encodeLocal(document: LocalDocument, payload: PayloadWriter): object {
  return { id: document.id, revision: document.revision, stamp: document.stamp, bodyLength: payload.addOptional(document.body) }
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

export function decodeBranch(message: WireMessage): Branch {
  const path = decodePath(message.path)
  const available: boolean[] = [...message.available]
  const tombstones: boolean[] = [...message.tombstones]
  if (available.length !== path.ids.length || tombstones.length !== path.ids.length) {
    throw new ProtocolError('a branch and its flags differ in length')
  }
  return { path, deleted: message.deleted, available, tombstones }
}
