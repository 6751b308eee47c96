/** The verbs of `ShardReplica` around purges, partitions and upkeep, as they travel (proto/shard.proto). */
import type { PartitionInfo, Purge, PurgeDocumentsReply, PurgeDocumentsRequest, PurgeRow, TimeSpan } from '@sectional/core'
import { count } from '../schema/schema.ts'
import type { WireMessage } from '../schema/schema.ts'
import type { StreamVerb, Verb } from '../schema/verb.ts'
import { decodeCheckpoint, decodePath } from './document-codec.ts'

function decodePurge({ uuid, id, paths }: WireMessage): Purge {
  return { uuid, id, paths: paths.map(decodePath) }
}

export const purgeDocuments: Verb<PurgeDocumentsRequest, PurgeDocumentsReply> = {
  name: 'purgeDocuments',
  encodeRequest: request => request,
  decodeRequest: message => ({
    purges: message.purges.map(decodePurge),
    ...(message.checkpoint && { checkpoint: decodeCheckpoint(message.checkpoint) }),
  }),
  encodeReply: purged => ({ purged: purged.map(revisions => ({ revisions })) }),
  decodeReply: message => message.purged.map((one: WireMessage) => [...one.revisions]),
}

export const scanPurges: StreamVerb<number, PurgeRow> = {
  name: 'scanPurges',
  rows: 'purges',
  encodeRequest: since => ({ since }),
  decodeRequest: message => count(message.since, 'since'),
  encodeRow: row => row,
  decodeRow: message => ({ ...decodePurge(message), sequence: count(message.sequence, 'purge sequence') }),
}

export const trimPurges: Verb<number, void> = {
  name: 'trimPurges',
  encodeRequest: sequence => ({ sequence }),
  decodeRequest: message => count(message.sequence, 'purge sequence'),
  encodeReply: () => ({}),
  decodeReply: () => undefined,
}

export const partitionInfo: Verb<string, PartitionInfo> = {
  name: 'partitionInfo',
  encodeRequest: partition => ({ partition }),
  decodeRequest: message => message.partition,
  encodeReply: ({ documentCount, deletedCount, sizes }) => ({ documentCount, deletedCount, activeBytes: sizes.active, externalBytes: sizes.external }),
  decodeReply: message => ({
    documentCount: count(message.documentCount, 'document count'),
    deletedCount: count(message.deletedCount, 'deleted count'),
    sizes: { active: count(message.activeBytes, 'active size'), external: count(message.externalBytes, 'external size') },
  }),
}

export const compactShard: Verb<void, void> = {
  name: 'compactShard',
  encodeRequest: () => ({}),
  decodeRequest: () => undefined,
  encodeReply: () => ({}),
  decodeReply: () => undefined,
}

export const timeSpans: Verb<{ readonly clear: boolean }, readonly TimeSpan[]> = {
  name: 'timeSpans',
  encodeRequest: request => request,
  decodeRequest: message => ({ clear: message.clear }),
  encodeReply: spans => ({ spans }),
  decodeReply: message => message.spans.map((span: WireMessage) => (
    { begin: count(span.begin, 'time'), sequence: count(span.sequence, 'sequence') })),
}
