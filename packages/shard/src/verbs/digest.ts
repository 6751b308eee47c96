import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { DigestBuckets, DocumentLeaves, ScanDigestBucketRequest } from '@sectional/core'
import { ReplicaError } from '@sectional/core'
import { ShardKeys } from '../records/key-layout.ts'
import { DocumentRecord } from '../records/document-record.ts'
import { asLeaves } from '../records/stored-leaves.ts'
import type { ShardRecords } from '../reading/shard-records.ts'
import { scanEntries } from '../records/entry-scan.ts'

const bucketCountMax = 65_536

/**
 * Computes for each bucket the exclusive-or of 64 bits of the MD5 of each document's id and leaves. Replicas with the
 * same leaves have the same digests, in whatever order the leaves arrived. The function scans all documents (about 4 us
 * for each), and other work runs between the pages.
 */
export async function digestDocuments(records: ShardRecords, bucketCount: number): Promise<DigestBuckets> {
  checkBuckets(bucketCount, 0)
  const high = new Uint32Array(bucketCount)
  const low = new Uint32Array(bucketCount)
  for await (const page of scanEntries(records.store, records.keys.kind('i'))) {
    for (const [key, value] of page) {
      const id = ShardKeys.text(key)
      const bucket = bucketOf(id, bucketCount)
      const digest = leavesDigest(id, value)
      high[bucket]! ^= Number.parseInt(digest.slice(0, 8), 16)
      low[bucket]! ^= Number.parseInt(digest.slice(8, 16), 16)
    }
  }
  return Array.from(high, (word, bucket) => hex(word) + hex(low[bucket]!))
}

/** Lists the documents of one bucket. It scans all documents of the shard. */
export async function* scanDigestBucket(
  records: ShardRecords, { bucketCount, bucket }: ScanDigestBucketRequest,
): AsyncGenerator<readonly DocumentLeaves[]> {
  checkBuckets(bucketCount, bucket)
  for await (const page of scanEntries(records.store, records.keys.kind('i'))) {
    const rows: DocumentLeaves[] = []
    for (const [key, value] of page) {
      const id = ShardKeys.text(key)
      if (bucketOf(id, bucketCount) !== bucket) continue
      rows.push({ id, leaves: asLeaves(DocumentRecord.decode(id, value).leaves) })
    }
    if (rows.length > 0) yield rows
  }
}

function bucketOf(id: string, bucketCount: number): number {
  return crc32(id) % bucketCount
}

function leavesDigest(id: string, value: Uint8Array): string {
  let text = id
  for (const { revision, deleted } of DocumentRecord.decode(id, value).leaves) {
    text += `\0${revision}${deleted ? '-' : '+'}`
  }
  return hash('md5', text, 'hex')
}

/** Most buckets of a small shard are empty. */
function hex(word: number): string {
  return word === 0 ? '00000000' : word.toString(16).padStart(8, '0')
}

function checkBuckets(bucketCount: number, bucket: number): void {
  if (!Number.isInteger(bucketCount) || bucketCount < 1 || bucketCount > bucketCountMax) {
    throw new ReplicaError('protocol', `a digest has 1 to ${bucketCountMax} buckets, not ${bucketCount}`)
  }
  if (!Number.isInteger(bucket) || bucket < 0 || bucket >= bucketCount) {
    throw new ReplicaError('protocol', `there is no bucket ${bucket} of ${bucketCount}`)
  }
}
