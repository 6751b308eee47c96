/** The cluster's maintenance of replicas: their state, digests by which two replicas are compared, and compaction. */
import { bareCall, call, pages, type VerbsOf } from '../verb-table.ts'
import type { Leaf } from './document-revision.ts'

export interface ReplicaInfo {
  /** Random id of this incarnation of the replica's store; a rebuilt store gets a new one. */
  readonly history: string
  /** Newest committed sequence. */
  readonly sequence: number
  readonly documentCount: number
  readonly deletedCount: number
  readonly purgeSequence: number
  /** Sequence of the oldest purge that is still recorded; 0: no purge is recorded. */
  readonly oldestPurge: number
  /** The purge sequence up to which this replica has applied the purges of each peer, by the peer's history. */
  readonly purgesSeen: Readonly<Record<string, number>>
  /** True while a compaction removes the bodies of replaced revisions. */
  readonly compacting: boolean
  /** Bytes: `file` on disk (approximate), `active` live data as it is encoded, `external` live data as JSON. */
  readonly sizes: { readonly file: number; readonly active: number; readonly external: number }
  /** The sequence up to which this replica has the changes of each peer, by the peer's history. */
  readonly seen: Readonly<Record<string, number>>
  /** True after an absence, until the replica has fetched the changes of its peers. */
  readonly catchingUp: boolean
}

export interface PartitionInfo {
  readonly documentCount: number
  readonly deletedCount: number
  /** Bytes, as in `ReplicaInfo`. */
  readonly sizes: { readonly active: number; readonly external: number }
}

/** One digest for each bucket, over the leaves of the documents whose ids hash into that bucket. */
export type DigestBuckets = readonly string[]

export interface DocumentLeaves { readonly id: string; readonly leaves: readonly Leaf[] }

/** `bucket` is at least 0 and less than `bucketCount`. */
export interface ScanDigestBucketRequest { readonly bucketCount: number; readonly bucket: number }

export const upkeepVerbs = {
  replicaInfo: bareCall<ReplicaInfo>(),
  partitionInfo: call<string, PartitionInfo>(),
  /** Begins to remove the bodies of replaced revisions, unless that is under way already; resolves at once. */
  compactShard: bareCall<void>(),
  /** Computes the digests; the request is the number of buckets. */
  digestDocuments: call<number, DigestBuckets>(),
  /** Lists the documents of one bucket in the byte order of UTF-8 of their ids. */
  scanDigestBucket: pages<ScanDigestBucketRequest, DocumentLeaves>(),
}

export interface UpkeepReplica extends VerbsOf<typeof upkeepVerbs> {}
