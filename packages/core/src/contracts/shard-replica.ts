/**
 * The contract where `shard`, `rpc` and `cluster` meet: one replica of one shard. The engine implements it on a store;
 * the remote stub implements it over the wire; the coordinator and anti-entropy use it without knowing which one they
 * hold. It is composed of smaller contracts, each of which declares its verbs in a table of its own; `ShardReplica`
 * declares no verb itself. Each implementation runs its conformance suite (`replica-suite/shard-replica-suite.ts`).
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

/** Every verb of `ShardReplica`. */
export const shardVerbs = {
  ...documentVerbs, ...changeVerbs, ...localDocumentVerbs, ...purgeVerbs, ...blobVerbs, ...upkeepVerbs,
}

/**
 * One replica of one shard. Every promise that confirms a write resolves only after the write is durable (fsync'ed).
 * Failures reject with `ReplicaError`; outcomes for single documents are values.
 */
export interface ShardReplica
  extends DocumentReplica, ChangeReplica, LocalDocumentReplica, PurgeReplica, BlobReplica, UpkeepReplica {}
