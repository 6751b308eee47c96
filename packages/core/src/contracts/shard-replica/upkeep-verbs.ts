/** What the cluster asks a replica for its own upkeep: its state, digests to compare replicas by, compaction. */
import { bareCall, call, pages, type VerbsOf } from '../verb-table.ts'
import type { Leaf } from './document-revision.ts'

export interface ReplicaInfo {
  /** Names this life of this replica's store: random, new when the store is. */
  readonly history: string
  /** Newest committed sequence. */
  readonly sequence: number
  readonly documentCount: number
  readonly deletedCount: number
  readonly purgeSequence: number
  /** Sequence of the oldest purge that is still recorded; 0: none is. */
  readonly oldestPurge: number
  /** Which purges of others this replica has applied: history -> their purge sequence. */
  readonly purgesSeen: Readonly<Record<string, number>>
  /** Old bodies are being dropped. */
  readonly compacting: boolean
  /** Bytes; `file` on disk (approximate), `active` live encoded data, `external` live JSON. */
  readonly sizes: { readonly file: number; readonly active: number; readonly external: number }
  /** What this replica has seen of others: history -> sequence. */
  readonly seen: Readonly<Record<string, number>>
  /** True after an absence, until its peers' changes have been fetched. */
  readonly catchingUp: boolean
}

export interface PartitionInfo {
  readonly documentCount: number
  readonly deletedCount: number
  /** Bytes, as in `ReplicaInfo`. */
  readonly sizes: { readonly active: number; readonly external: number }
}

/** Digest of the leaves of the documents whose id hashes into one of equally many buckets. */
export type DigestBuckets = readonly string[]

export interface DocumentLeaves { readonly id: string; readonly leaves: readonly Leaf[] }

/** `bucket` is at least 0 and less than `bucketCount`. */
export interface ScanDigestBucketRequest { readonly bucketCount: number; readonly bucket: number }

export const upkeepVerbs = {
  replicaInfo: bareCall<ReplicaInfo>(),
  partitionInfo: call<string, PartitionInfo>(),
  /** Begins to drop the bodies of replaced revisions, unless that runs already; resolves at once. */
  compactShard: bareCall<void>(),
  /** The digests of so many buckets. */
  digestDocuments: call<number, DigestBuckets>(),
  /** The documents of one bucket in the byte order of UTF-8 of their ids. */
  scanDigestBucket: pages<ScanDigestBucketRequest, DocumentLeaves>(),
}

export interface UpkeepReplica extends VerbsOf<typeof upkeepVerbs> {}
