import { bringBlobs } from '../coordinator/blob-transfer.ts'
import { exchangePurges } from './purge-exchange.ts'
import type { CallContext, DocumentLeaves, OpenRevisionsRequest, ShardReplica } from '@sectional/core'

export interface DigestComparison {
  readonly first: ShardReplica
  readonly second: ShardReplica
  readonly revsLimit: number
  readonly buckets: number
  readonly call: CallContext
}

export interface ComparisonResult {
  /** Buckets whose digests differed. */
  readonly buckets: number
  /** Documents of which either side lacked a revision, stored there now. */
  readonly documents: number
}

/** Documents of one question to the other side. */
const questionDocuments = 500

/**
 * Finds what checkpoints miss (a damaged disk, a restored backup, a bug): compares digests of buckets, then the
 * leaves of the buckets that differ, and copies both ways what is missing.
 */
export async function compareDigests(comparison: DigestComparison): Promise<ComparisonResult> {
  const { first, second, buckets, call } = comparison
  const [one, other] = await Promise.all([first.replicaInfo(call), second.replicaInfo(call)])
  await exchangePurges({ replica: first, info: one }, { replica: second, info: other }, call)
  const [left, right] = await Promise.all([first.digestDocuments(buckets, call), second.digestDocuments(buckets, call)])
  const repaired = new Set<string>()
  let differing = 0
  for (let bucket = 0; bucket < buckets; bucket++) {
    if (left[bucket] === right[bucket]) continue
    differing++
    const [ofFirst, ofSecond] = await Promise.all([readBucket(first, comparison, bucket), readBucket(second, comparison, bucket)])
    await copyMissing(comparison, first, second, differences(ofFirst, ofSecond), repaired)
    await copyMissing(comparison, second, first, differences(ofSecond, ofFirst), repaired)
  }
  return { buckets: differing, documents: repaired.size }
}

async function readBucket(replica: ShardReplica, { buckets, call }: DigestComparison, bucket: number): Promise<Map<string, DocumentLeaves>> {
  const documents = new Map<string, DocumentLeaves>()
  for await (const page of replica.scanDigestBucket(buckets, bucket, call)) for (const document of page) documents.set(document.id, document)
  return documents
}

/** Documents of one side with a leaf that is not a leaf of the other. */
function differences(of: ReadonlyMap<string, DocumentLeaves>, other: ReadonlyMap<string, DocumentLeaves>): DocumentLeaves[] {
  return [...of.values()].filter(({ id, leaves }) => {
    const known = new Set(other.get(id)?.leaves.map(leaf => leaf.revision))
    return leaves.some(leaf => !known.has(leaf.revision))
  })
}

async function copyMissing(
  { revsLimit, call }: DigestComparison, source: ShardReplica, target: ShardReplica, documents: readonly DocumentLeaves[], repaired: Set<string>,
): Promise<void> {
  for (let at = 0; at < documents.length; at += questionDocuments) {
    const asked = documents.slice(at, at + questionDocuments).map(({ id, leaves }) => ({ id, revisions: leaves.map(leaf => leaf.revision) }))
    const diffs = await target.diffRevisions(asked, call)
    const wanted: OpenRevisionsRequest[] = diffs.filter(diff => diff.missing.length > 0).map(({ id, missing }) => ({ id, revisions: missing, latest: false }))
    // Differences are rare: one document at a time bounds memory without knowing sizes.
    for (const request of wanted) {
      const [opened] = await source.openRevisions([request], call)
      const revisions = opened!.flatMap(each => each.kind === 'found' ? [each.revision] : [])
      const complete = await bringBlobs(source, target, revisions, call)
      if (complete.length === 0) continue
      await target.storeRevisions({ revisions: complete, revsLimit }, call)
      repaired.add(request.id)
    }
  }
}
