import { indexCodecs } from '../indexes/index-codecs.ts'
import { shardCodecs } from '../shard/shard-codecs.ts'

/** The codecs of the verbs of `ShardPeer`. */
export const shardPeerCodecs = { ...shardCodecs, ...indexCodecs }
