/** Encodes the verbs of `BlobReplica` as the messages of proto/verbs.proto. */
import type { blobVerbs } from '@sectional/core'
import { noRequest } from '../schema/codec.ts'
import type { CodecsOf } from '../schema/codec.ts'
import { count } from '../schema/schema.ts'
import { decodeBlobHash, encodeBlobHash } from './record-codec.ts'

export const blobCodecs: CodecsOf<typeof blobVerbs> = {
  writeBlob: {
    ...noRequest,
    encodeReply: ({ hash, length }) => ({ hash: encodeBlobHash(hash), length }),
    decodeReply: message => ({ hash: decodeBlobHash(message.hash), length: count(message.length, 'blob length') }),
  },
  readBlob: {
    rows: 'blob',
    encodeRequest: ({ hash, span }) => ({
      hash: encodeBlobHash(hash),
      span: span && { start: span.start, end: Math.min(span.end, Number.MAX_SAFE_INTEGER) },
    }),
    decodeRequest: message => ({
      hash: decodeBlobHash(message.hash),
      span: message.span && {
        start: count(message.span.start, 'start of a blob span'),
        end: count(message.span.end, 'end of a blob span'),
      },
    }),
    encodeRow: (chunk, payload) => ({ length: payload.add(chunk) }),
    decodeRow: (message, payload) => payload.take(message.length),
  },
  hasBlobs: {
    encodeRequest: hashes => ({ hashes: hashes.map(encodeBlobHash) }),
    decodeRequest: message => message.hashes.map(decodeBlobHash),
    encodeReply: found => ({ found }),
    decodeReply: message => [...message.found],
  },
}
