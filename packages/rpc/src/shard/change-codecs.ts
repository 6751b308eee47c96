/** Encodes the verbs of `ChangeReplica` as the messages of proto/verbs.proto. */
import type { changeVerbs } from '@sectional/core'
import type { CodecsOf } from '../schema/codec.ts'
import { count, optionalLimit, required } from '../schema/schema.ts'
import type { WireMessage } from '../schema/schema.ts'
import { decodeAttachments, decodeCheckpoint, decodeLeaves, encodeAttachments } from './record-codec.ts'

export const changeCodecs: CodecsOf<typeof changeVerbs> = {
  scanChanges: {
    rows: 'changes',
    encodeRequest: request => ({ ...request, limit: optionalLimit(request.limit) }),
    decodeRequest: message => ({
      since: count(message.since, 'since'),
      descending: message.descending,
      ...(message.limit !== null && { limit: message.limit }),
      body: message.body,
      locals: message.locals,
      ...(message.purges && { purges: true }),
      ...(message.history !== null && { history: message.history }),
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
  },
  countChanges: {
    encodeRequest: since => ({ since }),
    decodeRequest: message => count(message.since, 'since'),
    encodeReply: changes => ({ count: changes }),
    decodeReply: message => count(message.count, 'count'),
  },
  waitForChange: {
    encodeRequest: seen => ({ seen }),
    decodeRequest: message => decodeCheckpoint(required(message.seen, 'seen')),
    encodeReply: reached => ({ reached }),
    decodeReply: message => decodeCheckpoint(required(message.reached, 'reached')),
  },
  translateCheckpoints: {
    encodeRequest: read => ({ read }),
    decodeRequest: message => message.read.map(decodeCheckpoint),
    encodeReply: sequence => ({ sequence }),
    decodeReply: message => count(message.sequence, 'sequence'),
  },
  timeSpans: {
    encodeRequest: request => request,
    decodeRequest: message => ({ clear: message.clear }),
    encodeReply: spans => ({ spans }),
    decodeReply: message => message.spans.map((span: WireMessage) => (
      { begin: count(span.begin, 'time'), sequence: count(span.sequence, 'sequence') })),
  },
}
