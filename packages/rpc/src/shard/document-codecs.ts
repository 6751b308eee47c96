/** Encodes the verbs of `DocumentReplica` as the messages of proto/verbs.proto. */
import { noRivals } from '@sectional/core'
import type {
  DocumentEdit, DocumentSnapshot, documentVerbs, EditOutcome, OpenedRevision, ReplicaDiff,
} from '@sectional/core'
import type { CodecsOf } from '../schema/codec.ts'
import type { PayloadReader } from '../schema/payload.ts'
import { count, limit, optionalLimit, ProtocolError } from '../schema/schema.ts'
import type { WireMessage } from '../schema/schema.ts'
import {
  decodeAttachments, decodeAttempt, decodeBound, decodeBranch, decodeCheckpoint, decodeIdScan, decodeLeaves,
  decodeLocal, decodePath, decodeRevision, decodeTrail, encodeAttachments, encodeLocal, encodeRevision,
} from './record-codec.ts'

export const documentCodecs: CodecsOf<typeof documentVerbs> = {
  openDocument: {
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
  },
  openRevisions: {
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
  },
  updateDocuments: {
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
        revives: edit.revives === null ? '' : edit.revives,
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
        ...(edit.revives !== null && { revives: edit.revives === '' ? null : edit.revives }),
      })),
      revsLimit: message.revsLimit,
      ...(message.force && { force: true }),
      ...(message.partitionBytesMax !== null && {
        partitionBytesMax: count(message.partitionBytesMax, 'partition limit'),
      }),
    }),
    encodeReply: reply => reply.kind === 'declined'
      ? { declined: true }
      : { outcomes: reply.outcomes.map(encodeOutcome) },
    decodeReply: message => message.declined ? { kind: 'declined' } : {
      kind: 'decided',
      outcomes: message.outcomes.map(decodeOutcome),
    },
  },
  storeRevisions: {
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
      ...(message.locals.length > 0 && {
        locals: message.locals.map((local: WireMessage) => decodeLocal(local, payload)),
      }),
      revsLimit: message.revsLimit,
      ...(message.checkpoint && { checkpoint: decodeCheckpoint(message.checkpoint) }),
      ...(message.trail && { trail: decodeTrail(message.trail) }),
      ...(message.external && { external: true }),
      ...(message.missed && { missed: true }),
    }),
    encodeReply: reply => reply,
    decodeReply: ({ rivals, refused }) => rivals.length === 0 && refused.length === 0 ? noRivals
      : { rivals: [...rivals], ...(refused.length > 0 && { refused: [...refused] }) },
  },
  diffRevisions: {
    encodeRequest: items => ({ items }),
    decodeRequest: message => message.items.map((item: WireMessage) => (
      { id: item.id, revisions: [...item.revisions] })),
    encodeReply: items => ({ items }),
    decodeReply: message => message.items.map((item: WireMessage): ReplicaDiff => ({
      id: item.id, missing: [...item.missing], possibleAncestors: [...item.possibleAncestors],
      sequence: count(item.sequence, 'sequence'), otherLeaves: item.otherLeaves,
    })),
  },
  scanDocuments: {
    rows: 'documents',
    encodeRequest: request => ({ ...request, limit: optionalLimit(request.limit) }),
    decodeRequest: message => ({ ...decodeIdScan(message), body: message.body, leaves: message.leaves }),
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
  },
  countDocuments: {
    encodeRequest: request => request,
    decodeRequest: message => {
      const before = decodeBound(message.before)
      return { ...(before && { before }), descending: message.descending }
    },
    encodeReply: documents => ({ count: documents }),
    decodeReply: message => count(message.count, 'count'),
  },
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

function decodeOpenedRevision(message: WireMessage, payload: PayloadReader): OpenedRevision {
  switch (message.kind) {
    case 'found': return { kind: 'found', revision: decodeRevision(message.found, payload) }
    case 'missing': return { kind: 'missing', revision: message.missing }
    default: throw new ProtocolError('an opened revision of unknown kind')
  }
}

function encodeOutcome(outcome: EditOutcome): object {
  if (outcome.kind === 'updated') return { updated: outcome.path, purges: outcome.purges }
  if (outcome.kind === 'tombstone') return { tombstone: outcome.revision }
  return outcome.kind === 'partition_overflow' ? { partitionOverflow: true } : {}
}

function decodeOutcome({ updated, purges, partitionOverflow, tombstone }: WireMessage): EditOutcome {
  if (tombstone !== '') return { kind: 'tombstone', revision: tombstone }
  if (updated === null) return { kind: partitionOverflow ? 'partition_overflow' : 'conflict' }
  return { kind: 'updated', path: decodePath(updated), ...(purges.length > 0 && { purges: [...purges] }) }
}
