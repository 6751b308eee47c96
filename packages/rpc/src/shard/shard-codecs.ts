import { blobCodecs } from './blob-codecs.ts'
import { changeCodecs } from './change-codecs.ts'
import { documentCodecs } from './document-codecs.ts'
import { localDocumentCodecs } from './local-document-codecs.ts'
import { purgeCodecs } from './purge-codecs.ts'
import { upkeepCodecs } from './upkeep-codecs.ts'

/** The codecs of the verbs of `ShardReplica` and of its members. */
export const shardCodecs = {
  ...documentCodecs, ...changeCodecs, ...localDocumentCodecs, ...purgeCodecs, ...blobCodecs, ...upkeepCodecs,
}
