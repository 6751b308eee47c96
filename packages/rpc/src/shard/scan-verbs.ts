/** Every verb of `ShardReplica` that answers with pages, as it travels (proto/shard.proto). */
import type {
  BlobSpan, ChangeRow, DocumentLeaves, DocumentRow, LocalDocument, ScanChangesRequest, ScanDocumentsRequest, ScanLocalDocumentsRequest,
} from '@sectional/core'
import { count, optionalLimit } from '../schema/schema.ts'
import type { WireMessage } from '../schema/schema.ts'
import type { StreamVerb } from '../schema/verb.ts'
import { decodeAttachments, decodeBlobHash, decodeBound, decodeLeaves, decodeLocal, encodeAttachments, encodeBlobHash, encodeLocal } from './document-codec.ts'

function decodeSpan(message: WireMessage): ScanLocalDocumentsRequest {
  const start = decodeBound(message.start)
  const end = decodeBound(message.end)
  return {
    ...(start && { start }),
    ...(end && { end }),
    descending: message.descending,
    ...(message.limit !== null && { limit: message.limit }),
  }
}

export const scanDocuments: StreamVerb<ScanDocumentsRequest, DocumentRow> = {
  name: 'scanDocuments',
  rows: 'documents',
  encodeRequest: request => ({ ...request, limit: optionalLimit(request.limit) }),
  decodeRequest: message => ({ ...decodeSpan(message), body: message.body, leaves: message.leaves }),
  encodeRow: (row, payload) => ({
    id: row.id,
    revision: row.revision,
    bodyLength: payload.addOptional(row.body),
    attachments: encodeAttachments(row.attachments),
    leaves: row.leaves && { leaves: row.leaves },
  }),
  decodeRow: (message, payload) => {
    const body = payload.takeOptional(message.bodyLength)
    return {
      id: message.id,
      revision: message.revision,
      ...(body && { body }),
      ...decodeAttachments(message),
      ...(message.leaves && { leaves: decodeLeaves(message.leaves.leaves) }),
    }
  },
}

export const scanChanges: StreamVerb<ScanChangesRequest, ChangeRow> = {
  name: 'scanChanges',
  rows: 'changes',
  encodeRequest: request => ({ ...request, limit: optionalLimit(request.limit) }),
  decodeRequest: message => ({
    since: count(message.since, 'since'),
    descending: message.descending,
    ...(message.limit !== null && { limit: message.limit }),
    body: message.body,
    locals: message.locals,
    ...(message.history !== null && { history: message.history }),
    ...(message.purges && { purges: true }),
  }),
  encodeRow: (row, payload) => ({
    sequence: row.sequence,
    id: row.id,
    leaves: row.leaves,
    bodyLength: payload.addOptional(row.body),
    attachments: encodeAttachments(row.attachments),
    local: row.local,
    purged: row.purged,
  }),
  decodeRow: (message, payload) => {
    const body = payload.takeOptional(message.bodyLength)
    return {
      sequence: count(message.sequence, 'sequence'),
      id: message.id,
      leaves: decodeLeaves(message.leaves),
      ...(body && { body }),
      ...decodeAttachments(message),
      ...(message.local && { local: true as const }),
      ...(message.purged && { purged: true as const }),
    }
  },
}

export const scanLocalDocuments: StreamVerb<ScanLocalDocumentsRequest, LocalDocument> = {
  name: 'scanLocalDocuments',
  rows: 'locals',
  encodeRequest: request => ({ ...request, limit: optionalLimit(request.limit) }),
  decodeRequest: decodeSpan,
  encodeRow: encodeLocal,
  decodeRow: decodeLocal,
}

export const scanDigestBucket: StreamVerb<{ readonly bucketCount: number; readonly bucket: number }, DocumentLeaves> = {
  name: 'scanDigestBucket',
  rows: 'leaves',
  encodeRequest: request => request,
  decodeRequest: message => ({ bucketCount: message.bucketCount, bucket: message.bucket }),
  encodeRow: row => row,
  decodeRow: message => ({ id: message.id, leaves: decodeLeaves(message.leaves) }),
}

export const readBlob: StreamVerb<{ readonly hash: string; readonly span: BlobSpan | null }, Uint8Array> = {
  name: 'readBlob',
  rows: 'blob',
  encodeRequest: ({ hash, span }) => ({ hash: encodeBlobHash(hash), span: span && { start: span.start, end: Math.min(span.end, Number.MAX_SAFE_INTEGER) } }),
  decodeRequest: message => ({
    hash: decodeBlobHash(message.hash),
    span: message.span && { start: count(message.span.start, 'start of a blob span'), end: count(message.span.end, 'end of a blob span') },
  }),
  encodeRow: (chunk, payload) => ({ length: payload.add(chunk) }),
  decodeRow: (message, payload) => payload.take(message.length),
}
