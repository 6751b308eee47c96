import type { shardVerbs } from '@sectional/core'
import type { CodecsOf } from '../schema/codec.ts'
import { blobCodecs } from './blob-codecs.ts'
import { changeCodecs } from './change-codecs.ts'
import { documentCodecs } from './document-codecs.ts'
import { localDocumentCodecs } from './local-document-codecs.ts'
import { purgeCodecs } from './purge-codecs.ts'
import { upkeepCodecs } from './upkeep-codecs.ts'

/** The codecs of all verbs of `ShardReplica`. */
export const shardCodecs: CodecsOf<typeof shardVerbs> = {
  ...documentCodecs, ...changeCodecs, ...localDocumentCodecs, ...purgeCodecs, ...blobCodecs, ...upkeepCodecs,
}
