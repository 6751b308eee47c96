/** Encodes the verbs of `UpkeepReplica` as the messages of proto/verbs.proto. */
import type { upkeepVerbs } from '@sectional/core'
import { noReply, noRequest } from '../schema/codec.ts'
import type { CodecsOf } from '../schema/codec.ts'
import { count } from '../schema/schema.ts'
import type { WireMessage } from '../schema/schema.ts'
import { decodeCheckpoint, decodeLeaves } from './record-codec.ts'

export const upkeepCodecs: CodecsOf<typeof upkeepVerbs> = {
  replicaInfo: {
    ...noRequest,
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
  },
  partitionInfo: {
    encodeRequest: partition => ({ partition }),
    decodeRequest: message => message.partition,
    encodeReply: ({ documentCount, deletedCount, sizes: { active, external } }) => (
      { documentCount, deletedCount, activeBytes: active, externalBytes: external }),
    decodeReply: message => ({
      documentCount: count(message.documentCount, 'document count'),
      deletedCount: count(message.deletedCount, 'deleted count'),
      sizes: {
        active: count(message.activeBytes, 'active size'),
        external: count(message.externalBytes, 'external size'),
      },
    }),
  },
  compactShard: {
    ...noRequest,
    ...noReply,
  },
  digestDocuments: {
    encodeRequest: bucketCount => ({ bucketCount }),
    decodeRequest: message => message.bucketCount,
    encodeReply: buckets => ({ buckets }),
    decodeReply: message => [...message.buckets],
  },
  scanDigestBucket: {
    rows: 'leaves',
    encodeRequest: request => request,
    decodeRequest: message => ({ bucketCount: message.bucketCount, bucket: message.bucket }),
    encodeRow: row => row,
    decodeRow: message => ({ id: message.id, leaves: decodeLeaves(message.leaves) }),
  },
}

function decodeSeen(messages: readonly WireMessage[]): Record<string, number> {
  return Object.fromEntries(messages.map(decodeCheckpoint).map(({ history, sequence }) => [history, sequence]))
}
