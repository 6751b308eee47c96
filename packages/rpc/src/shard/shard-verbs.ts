/** Every verb of `ShardReplica` that answers once, as it travels (proto/shard.proto). */
import { noRivals } from '@sectional/core'
import type {
  DigestBuckets, DocumentEdit, DocumentSnapshot, EditOutcome, IdBound, LocalDocument, OpenDocumentRequest, OpenedRevision,
  OpenRevisionsRequest, ReplicaCheckpoint, ReplicaDiff, ReplicaInfo, StoreRevisionsReply, StoreRevisionsRequest, UpdateDocumentsReply, UpdateDocumentsRequest,
  UpdateLocalDocumentReply, UpdateLocalDocumentRequest, WrittenBlob,
} from '@sectional/core'
import { count, limit, ProtocolError, required } from '../schema/schema.ts'
import type { WireMessage } from '../schema/schema.ts'
import type { PayloadReader } from '../schema/payload.ts'
import type { Verb } from '../schema/verb.ts'
import {
  decodeAttachments, decodeAttempt, decodeBlobHash, decodeBound, decodeBranch, decodeCheckpoint, decodeLeaves, decodeLocal, decodePath, decodeRevision, decodeTrail, encodeAttachments, encodeBlobHash,
  encodeLocal, encodeRevision,
} from './document-codec.ts'

export const openDocument: Verb<OpenDocumentRequest, DocumentSnapshot | null> = {
  name: 'openDocument',
  encodeRequest: request => request,
  decodeRequest: message => ({ id: message.id, body: message.body, tree: message.tree }),
  encodeReply: (snapshot, payload) => snapshot === null ? {} : {
    snapshot: {
      leaves: snapshot.leaves,
      sequence: snapshot.sequence,
      bodyLength: payload.addOptional(snapshot.body),
      attachments: encodeAttachments(snapshot.attachments),
      tree: snapshot.tree && { branches: snapshot.tree },
    },
  },
  decodeReply: (message, payload) => message.snapshot === null ? null : decodeSnapshot(message.snapshot, payload),
}

function decodeSnapshot(message: WireMessage, payload: PayloadReader): DocumentSnapshot {
  if (message.leaves.length === 0) throw new ProtocolError('a document without leaves')
  const body = payload.takeOptional(message.bodyLength)
  return {
    leaves: decodeLeaves(message.leaves),
    sequence: count(message.sequence, 'sequence'),
    ...(body && { body }),
    ...decodeAttachments(message),
    ...(message.tree && { tree: message.tree.branches.map(decodeBranch) }),
  }
}

export const openRevisions: Verb<readonly OpenRevisionsRequest[], readonly (readonly OpenedRevision[])[]> = {
  name: 'openRevisions',
  encodeRequest: requests => ({
    items: requests.map(({ id, revisions, latest }) => (
      revisions === 'leaves' ? { id, named: false, latest } : { id, named: true, revisions, latest })),
  }),
  decodeRequest: message => message.items.map((item: WireMessage) => (
    { id: item.id, revisions: item.named ? [...item.revisions] : 'leaves', latest: item.latest })),
  encodeReply: (items, payload) => ({
    items: items.map(opened => ({
      revisions: opened.map(one => (
        one.kind === 'found' ? { found: encodeRevision(one.revision, payload) } : { missing: one.revision })),
    })),
  }),
  decodeReply: (message, payload) => message.items.map(
    (item: WireMessage) => item.revisions.map((one: WireMessage) => decodeOpenedRevision(one, payload))),
}

function decodeOpenedRevision(message: WireMessage, payload: PayloadReader): OpenedRevision {
  switch (message.kind) {
    case 'found': return { kind: 'found', revision: decodeRevision(message.found, payload) }
    case 'missing': return { kind: 'missing', revision: message.missing }
    default: throw new ProtocolError('an opened revision of no known kind')
  }
}

export const updateDocuments: Verb<UpdateDocumentsRequest, UpdateDocumentsReply> = {
  name: 'updateDocuments',
  encodeRequest: ({ edits, revsLimit, force, partitionBytesMax }, payload) => ({
    partitionBytesMax,
    edits: edits.map(edit => ({
      id: edit.id,
      parent: edit.parent,
      deleted: edit.deleted,
      revisionHash: edit.revisionHash,
      bodyLength: payload.add(edit.body),
      attachments: encodeAttachments(edit.attachments),
      attempt: edit.attempt,
    })),
    revsLimit: limit(revsLimit),
    force,
  }),
  decodeRequest: (message, payload) => ({
    edits: message.edits.map((edit: WireMessage): DocumentEdit => ({
      id: edit.id,
      parent: edit.parent,
      deleted: edit.deleted,
      revisionHash: edit.revisionHash,
      body: payload.take(edit.bodyLength),
      ...decodeAttachments(edit),
      ...decodeAttempt(edit),
    })),
    revsLimit: message.revsLimit,
    ...(message.force && { force: true }),
    ...(message.partitionBytesMax !== null && { partitionBytesMax: count(message.partitionBytesMax, 'partition limit') }),
  }),
  encodeReply: reply => reply.kind === 'declined'
    ? { declined: true }
    : { outcomes: reply.outcomes.map(encodeOutcome) },
  decodeReply: message => message.declined ? { kind: 'declined' } : {
    kind: 'decided',
    outcomes: message.outcomes.map(decodeOutcome),
  },
}

function encodeOutcome(outcome: EditOutcome): object {
  if (outcome.kind === 'updated') return { updated: outcome.path, purges: outcome.purges }
  return outcome.kind === 'partition_overflow' ? { partitionOverflow: true } : {}
}

function decodeOutcome({ updated, purges, partitionOverflow }: WireMessage): EditOutcome {
  if (updated === null) return { kind: partitionOverflow ? 'partition_overflow' : 'conflict' }
  return { kind: 'updated', path: decodePath(updated), ...(purges.length > 0 && { purges: [...purges] }) }
}

export const storeRevisions: Verb<StoreRevisionsRequest, StoreRevisionsReply> = {
  name: 'storeRevisions',
  encodeRequest: ({ revisions, locals, revsLimit, checkpoint, trail, external, missed }, payload) => ({
    external,
    missed,
    revisions: revisions.map(revision => encodeRevision(revision, payload)),
    locals: locals?.map(local => encodeLocal(local, payload)),
    revsLimit: limit(revsLimit),
    checkpoint,
    trail,
  }),
  decodeRequest: (message, payload) => ({
    revisions: message.revisions.map((revision: WireMessage) => decodeRevision(revision, payload)),
    ...(message.locals.length > 0 && { locals: message.locals.map((local: WireMessage) => decodeLocal(local, payload)) }),
    revsLimit: message.revsLimit,
    ...(message.checkpoint && { checkpoint: decodeCheckpoint(message.checkpoint) }),
    ...(message.trail && { trail: decodeTrail(message.trail) }),
    ...(message.external && { external: true }),
    ...(message.missed && { missed: true }),
  }),
  encodeReply: reply => reply,
  decodeReply: message => message.rivals.length === 0 ? noRivals : { rivals: [...message.rivals] },
}

export const diffRevisions: Verb<readonly { readonly id: string; readonly revisions: readonly string[] }[], readonly ReplicaDiff[]> = {
  name: 'diffRevisions',
  encodeRequest: items => ({ items }),
  decodeRequest: message => message.items.map((item: WireMessage) => ({ id: item.id, revisions: [...item.revisions] })),
  encodeReply: items => ({ items }),
  decodeReply: message => message.items.map((item: WireMessage): ReplicaDiff => ({
    id: item.id, missing: [...item.missing], possibleAncestors: [...item.possibleAncestors],
    sequence: count(item.sequence, 'sequence'), otherLeaves: item.otherLeaves,
  })),
}

export const countDocuments: Verb<{ readonly before?: IdBound; readonly descending: boolean }, number> = {
  name: 'countDocuments',
  encodeRequest: request => request,
  decodeRequest: message => {
    const before = decodeBound(message.before)
    return { ...(before && { before }), descending: message.descending }
  },
  encodeReply: documents => ({ count: documents }),
  decodeReply: message => count(message.count, 'count'),
}

export const countChanges: Verb<number, number> = {
  name: 'countChanges',
  encodeRequest: since => ({ since }),
  decodeRequest: message => count(message.since, 'since'),
  encodeReply: changes => ({ count: changes }),
  decodeReply: message => count(message.count, 'count'),
}

export const waitForChange: Verb<ReplicaCheckpoint, ReplicaCheckpoint> = {
  name: 'waitForChange',
  encodeRequest: seen => ({ seen }),
  decodeRequest: message => decodeCheckpoint(required(message.seen, 'seen')),
  encodeReply: reached => ({ reached }),
  decodeReply: message => decodeCheckpoint(required(message.reached, 'reached')),
}

export const translateCheckpoints: Verb<readonly ReplicaCheckpoint[], number> = {
  name: 'translateCheckpoints',
  encodeRequest: read => ({ read }),
  decodeRequest: message => message.read.map(decodeCheckpoint),
  encodeReply: sequence => ({ sequence }),
  decodeReply: message => count(message.sequence, 'sequence'),
}

export const openLocalDocuments: Verb<readonly string[], readonly (LocalDocument | null)[]> = {
  name: 'openLocalDocuments',
  encodeRequest: ids => ({ ids }),
  decodeRequest: message => [...message.ids],
  encodeReply: (documents, payload) => ({
    items: documents.map(document => document === null ? {} : { document: encodeLocal(document, payload) }),
  }),
  decodeReply: (message, payload) => message.items.map(
    (item: WireMessage) => item.document === null ? null : decodeLocal(item.document, payload)),
}

export const updateLocalDocument: Verb<UpdateLocalDocumentRequest, UpdateLocalDocumentReply> = {
  name: 'updateLocalDocument',
  encodeRequest: ({ id, revision, body, mustExist }, payload) => ({ id, revision, bodyLength: payload.addOptional(body), mustExist }),
  decodeRequest: (message, payload) => ({
    id: message.id,
    revision: count(message.revision, 'local revision'),
    body: payload.takeOptional(message.bodyLength) ?? null,
    mustExist: message.mustExist,
  }),
  encodeReply: (reply, payload) => reply.kind === 'missing' ? {} : { updated: encodeLocal(reply.document, payload) },
  decodeReply: (message, payload) => message.updated === null
    ? { kind: 'missing' }
    : { kind: 'updated', document: decodeLocal(message.updated, payload) },
}

export const replicaInfo: Verb<void, ReplicaInfo> = {
  name: 'replicaInfo',
  encodeRequest: () => ({}),
  decodeRequest: () => undefined,
  encodeReply: info => ({
    history: info.history,
    sequence: info.sequence,
    documentCount: info.documentCount,
    deletedCount: info.deletedCount,
    purgeSequence: info.purgeSequence,
    fileBytes: Math.round(info.sizes.file),
    activeBytes: Math.round(info.sizes.active),
    externalBytes: Math.round(info.sizes.external),
    seen: Object.entries(info.seen).map(([history, sequence]) => ({ history, sequence })),
    catchingUp: info.catchingUp,
    oldestPurge: info.oldestPurge,
    purgesSeen: Object.entries(info.purgesSeen).map(([history, sequence]) => ({ history, sequence })),
    compacting: info.compacting,
  }),
  decodeReply: message => ({
    history: message.history,
    sequence: count(message.sequence, 'sequence'),
    documentCount: count(message.documentCount, 'document count'),
    deletedCount: count(message.deletedCount, 'deleted count'),
    purgeSequence: count(message.purgeSequence, 'purge sequence'),
    sizes: {
      file: count(message.fileBytes, 'file size'),
      active: count(message.activeBytes, 'active size'),
      external: count(message.externalBytes, 'external size'),
    },
    seen: decodeSeen(message.seen),
    catchingUp: message.catchingUp,
    oldestPurge: count(message.oldestPurge, 'oldest purge'),
    purgesSeen: decodeSeen(message.purgesSeen),
    compacting: message.compacting,
  }),
}

function decodeSeen(messages: readonly WireMessage[]): Record<string, number> {
  return Object.fromEntries(messages.map(decodeCheckpoint).map(({ history, sequence }: ReplicaCheckpoint) => [history, sequence]))
}

export const digestDocuments: Verb<number, DigestBuckets> = {
  name: 'digestDocuments',
  encodeRequest: bucketCount => ({ bucketCount }),
  decodeRequest: message => message.bucketCount,
  encodeReply: buckets => ({ buckets }),
  decodeReply: message => [...message.buckets],
}

/** The content travels in chunks behind the call (`Upload`). */
export const writeBlob: Verb<void, WrittenBlob> = {
  name: 'writeBlob',
  encodeRequest: () => ({}),
  decodeRequest: () => undefined,
  encodeReply: ({ hash, length }) => ({ hash: encodeBlobHash(hash), length }),
  decodeReply: message => ({ hash: decodeBlobHash(message.hash), length: count(message.length, 'blob length') }),
}

export const hasBlobs: Verb<readonly string[], readonly boolean[]> = {
  name: 'hasBlobs',
  encodeRequest: hashes => ({ hashes: hashes.map(encodeBlobHash) }),
  decodeRequest: message => message.hashes.map(decodeBlobHash),
  encodeReply: found => ({ found }),
  decodeReply: message => [...message.found],
}
