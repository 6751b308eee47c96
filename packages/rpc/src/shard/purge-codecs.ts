/** Encodes the verbs of `PurgeReplica` as the messages of proto/verbs.proto. */
import type { Purge, purgeVerbs } from '@sectional/core'
import { noReply } from '../schema/codec.ts'
import type { CodecsOf } from '../schema/codec.ts'
import { count } from '../schema/schema.ts'
import type { WireMessage } from '../schema/schema.ts'
import { decodeCheckpoint, decodePath } from './record-codec.ts'

export const purgeCodecs: CodecsOf<typeof purgeVerbs> = {
  purgeDocuments: {
    encodeRequest: request => request,
    decodeRequest: message => ({
      purges: message.purges.map(decodePurge),
      ...(message.checkpoint && { checkpoint: decodeCheckpoint(message.checkpoint) }),
    }),
    encodeReply: purged => ({ purged: purged.map(revisions => ({ revisions })) }),
    decodeReply: message => message.purged.map((one: WireMessage) => [...one.revisions]),
  },
  scanPurges: {
    rows: 'purges',
    encodeRequest: since => ({ since }),
    decodeRequest: message => count(message.since, 'since'),
    encodeRow: row => row,
    decodeRow: message => ({ ...decodePurge(message), sequence: count(message.sequence, 'purge sequence') }),
  },
  trimPurges: {
    encodeRequest: sequence => ({ sequence }),
    decodeRequest: message => count(message.sequence, 'purge sequence'),
    ...noReply,
  },
}

function decodePurge({ uuid, id, paths }: WireMessage): Purge {
  return { uuid, id, paths: paths.map(decodePath) }
}
