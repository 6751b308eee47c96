/** Encodes the verbs of `LocalDocumentReplica` as the messages of proto/verbs.proto. */
import type { localDocumentVerbs } from '@sectional/core'
import type { CodecsOf } from '../schema/codec.ts'
import { count, optionalLimit } from '../schema/schema.ts'
import type { WireMessage } from '../schema/schema.ts'
import { decodeIdScan, decodeLocal, encodeLocal } from './record-codec.ts'

export const localDocumentCodecs: CodecsOf<typeof localDocumentVerbs> = {
  openLocalDocuments: {
    encodeRequest: ids => ({ ids }),
    decodeRequest: message => [...message.ids],
    encodeReply: (documents, payload) => ({
      items: documents.map(document => document === null ? {} : { document: encodeLocal(document, payload) }),
    }),
    decodeReply: (message, payload) => message.items.map(
      (item: WireMessage) => item.document === null ? null : decodeLocal(item.document, payload)),
  },
  updateLocalDocument: {
    encodeRequest: ({ id, revision, body, mustExist }, payload) => (
      { id, revision, bodyLength: payload.addOptional(body), mustExist }),
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
  },
  scanLocalDocuments: {
    rows: 'locals',
    encodeRequest: request => ({ ...request, limit: optionalLimit(request.limit) }),
    decodeRequest: decodeIdScan,
    encodeRow: encodeLocal,
    decodeRow: decodeLocal,
  },
}
