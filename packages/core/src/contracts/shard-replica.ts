/**
 * The contract of one replica of one shard, which `shard`, `rpc` and `cluster` share. The engine implements it on a
 * store, and the remote stub implements it by calls to another node. The coordinator and anti-entropy use both alike.
 * It is composed of smaller contracts, each of which declares its verbs in a table of its own; `ShardReplica` declares
 * no verb itself. A replica also has the contracts of blobs and of upkeep, as members. Each implementation runs the
 * conformance suite (`replica-suite/shard-replica-suite.ts`).
 */
import { blobVerbs, type BlobReplica } from './shard-replica/blob-verbs.ts'
import { changeVerbs, type ChangeReplica } from './shard-replica/change-verbs.ts'
import { documentVerbs, type DocumentReplica } from './shard-replica/document-verbs.ts'
import { localDocumentVerbs, type LocalDocumentReplica } from './shard-replica/local-document-verbs.ts'
import { purgeVerbs, type PurgeReplica } from './shard-replica/purge-verbs.ts'
import { upkeepVerbs, type UpkeepReplica } from './shard-replica/upkeep-verbs.ts'

export * from './call-context.ts'
export * from './replica-error.ts'
export * from './shard-id.ts'
export * from './shard-replica/blob-verbs.ts'
export * from './shard-replica/change-verbs.ts'
export * from './shard-replica/document-revision.ts'
export * from './shard-replica/document-verbs.ts'
export * from './shard-replica/id-scan.ts'
export * from './shard-replica/local-document-verbs.ts'
export * from './shard-replica/purge-verbs.ts'
export * from './shard-replica/reply-size.ts'
export * from './shard-replica/upkeep-verbs.ts'

/** The verbs of `ShardReplica` and the tables of its members. */
export const shardVerbs = {
  ...documentVerbs, ...changeVerbs, ...localDocumentVerbs, ...purgeVerbs, blobs: blobVerbs, upkeep: upkeepVerbs,
}

/**
 * One replica of one shard. Every promise that confirms a write resolves only after the write is durable (fsync'ed).
 * Failures reject with `ReplicaError`; outcomes for single documents are values. Both statements hold for the members,
 * too. Each member is one object for the lifetime of the replica's object.
 */
export interface ShardReplica extends DocumentReplica, ChangeReplica, LocalDocumentReplica, PurgeReplica {
  /** The contents of attachments on the replica's node. */
  readonly blobs: BlobReplica
  /** The replica's state and maintenance, for the cluster. */
  readonly upkeep: UpkeepReplica
}
