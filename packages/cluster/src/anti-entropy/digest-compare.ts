import { bringBlobs } from '../coordinator/blob-transfer.ts'
import { boundCall, exchangePurges } from './purge-exchange.ts'
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

/** One end of a comparison; `call` is for the life of the replica that takes part. */
interface Side { readonly replica: ShardReplica; readonly call: CallContext }

/** Documents of one question to the other side. */
const questionDocuments = 500

/**
 * Finds what checkpoints miss (a damaged disk, a restored backup, a bug): compares digests of buckets, then the
 * leaves of the buckets that differ, and copies both ways what is missing.
 *
 * @throws ReplicaError of either end, `other_history` when one of them has begun another life meanwhile
 */
export async function compareDigests(comparison: DigestComparison): Promise<ComparisonResult> {
  const { buckets, call } = comparison
  const [one, other] = await Promise.all([comparison.first.replicaInfo(call), comparison.second.replicaInfo(call)])
  await exchangePurges({ replica: comparison.first, info: one }, { replica: comparison.second, info: other }, call)
  const first: Side = { replica: comparison.first, call: boundCall(call, one) }
  const second: Side = { replica: comparison.second, call: boundCall(call, other) }
  const [left, right] = await Promise.all([first, second].map(side => side.replica.digestDocuments(buckets, side.call)))
  const repaired = new Set<string>()
  let differing = 0
  for (let bucket = 0; bucket < buckets; bucket++) {
    if (left![bucket] === right![bucket]) continue
    differing++
    const [ofFirst, ofSecond] = await Promise.all([readBucket(first, buckets, bucket), readBucket(second, buckets, bucket)])
    await copyMissing(comparison, first, second, differences(ofFirst, ofSecond), repaired)
    await copyMissing(comparison, second, first, differences(ofSecond, ofFirst), repaired)
  }
  return { buckets: differing, documents: repaired.size }
}

async function readBucket({ replica, call }: Side, buckets: number, bucket: number): Promise<Map<string, DocumentLeaves>> {
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
  { revsLimit, call }: DigestComparison, source: Side, target: Side, documents: readonly DocumentLeaves[], repaired: Set<string>,
): Promise<void> {
  for (let at = 0; at < documents.length; at += questionDocuments) {
    const asked = documents.slice(at, at + questionDocuments).map(({ id, leaves }) => ({ id, revisions: leaves.map(leaf => leaf.revision) }))
    const diffs = await target.replica.diffRevisions(asked, target.call)
    const wanted: OpenRevisionsRequest[] = diffs.filter(diff => diff.missing.length > 0).map(({ id, missing }) => ({ id, revisions: missing, latest: false }))
    // Differences are rare: one document at a time bounds memory without knowing sizes.
    for (const request of wanted) {
      const [opened] = await source.replica.openRevisions([request], source.call)
      const revisions = opened!.flatMap(each => each.kind === 'found' ? [each.revision] : [])
      const complete = await bringBlobs(source.replica, target.replica, revisions, call)
      if (complete.length === 0) continue
      await target.replica.storeRevisions({ revisions: complete, revsLimit }, target.call)
      repaired.add(request.id)
    }
  }
}
