import { bringBlobs } from '../replicas/blob-copy.ts'
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
  /** Documents of either replica that lacked a revision, or the ancestors of one, which were copied. */
  readonly documents: number
}

/** One replica of a comparison. `call` is bound to the history of the replica that takes part. */
interface Side { readonly replica: ShardReplica; readonly call: CallContext }

/** Documents in one question to the other replica. */
const questionDocuments = 500
/**
 * Largest number of buckets that are read one by one, because each requires a scan of the whole shard. If more buckets
 * differ, all documents are read once.
 */
const bucketsReadMax = 3

/**
 * Finds differences that checkpoints do not show, which a damaged disk, a restored backup or a bug can cause. It
 * compares digests of buckets, then the leaves of the buckets that differ, and copies missing revisions in both
 * directions.
 *
 * @throws ReplicaError of either replica; `other_history` when one of them began a new history during the comparison
 */
export async function compareDigests(comparison: DigestComparison): Promise<ComparisonResult> {
  const { buckets, call } = comparison
  const [one, other] = await Promise.all([
    comparison.first.upkeep.replicaInfo(call), comparison.second.upkeep.replicaInfo(call),
  ])
  await exchangePurges({ replica: comparison.first, info: one }, { replica: comparison.second, info: other }, call)
  const first: Side = { replica: comparison.first, call: boundCall(call, one) }
  const second: Side = { replica: comparison.second, call: boundCall(call, other) }
  const [left, right] = await Promise.all(
    [first, second].map(side => side.replica.upkeep.digestDocuments(buckets, side.call)),
  )
  const repaired = new Set<string>()
  const differing = left!.flatMap((digest, bucket) => digest === right![bucket] ? [] : [bucket])
  if (differing.length > bucketsReadMax) {
    await joinDocuments(comparison, first, second, repaired)
    return { buckets: differing.length, documents: repaired.size }
  }
  for (const bucket of differing) {
    const [ofFirst, ofSecond] = await Promise.all([
      readBucket(first, buckets, bucket), readBucket(second, buckets, bucket),
    ])
    await copyMissing(comparison, first, second, differences(ofFirst, ofSecond), repaired)
    await copyMissing(comparison, second, first, differences(ofSecond, ofFirst), repaired)
  }
  return { buckets: differing.length, documents: repaired.size }
}

/** Reads both replicas in the order of ids, a page at a time, and copies the documents that differ. */
async function joinDocuments(
  comparison: DigestComparison, first: Side, second: Side, repaired: Set<string>,
): Promise<void> {
  const sides = [first, second] as const
  const rows = sides.map(({ replica, call }) =>
    eachRow(replica.upkeep.scanDigestBucket({ bucketCount: 1, bucket: 0 }, call)))
  const differing: [DocumentLeaves[], DocumentLeaves[]] = [[], []]
  const copy = async (): Promise<void> => {
    const [ofFirst, ofSecond] = [differing[0].splice(0), differing[1].splice(0)]
    await copyMissing(comparison, first, second, ofFirst, repaired)
    await copyMissing(comparison, second, first, ofSecond, repaired)
  }
  try {
    let [one, other] = await Promise.all(rows.map(each => each.next()))
    while (!one!.done || !other!.done) {
      const order = one!.done ? 1 : other!.done ? -1 : compareIds(one!.value.id, other!.value.id)
      const left = order <= 0 ? [one!.value as DocumentLeaves] : []
      const right = order >= 0 ? [other!.value as DocumentLeaves] : []
      differing[0].push(...differences(byId(left), byId(right)))
      differing[1].push(...differences(byId(right), byId(left)))
      if (differing[0].length + differing[1].length >= questionDocuments) await copy()
      if (order <= 0) one = await rows[0]!.next()
      if (order >= 0) other = await rows[1]!.next()
    }
    await copy()
  } finally {
    await Promise.all(rows.map(each => each.return(undefined)))
  }
}

async function* eachRow(pages: AsyncIterable<readonly DocumentLeaves[]>): AsyncGenerator<DocumentLeaves, undefined> {
  for await (const page of pages) yield* page
}

function byId(rows: readonly DocumentLeaves[]): Map<string, DocumentLeaves> {
  return new Map(rows.map(row => [row.id, row]))
}

/** Compares in the byte order of UTF-8. */
function compareIds(a: string, b: string): number {
  return a === b ? 0 : Buffer.compare(Buffer.from(a), Buffer.from(b))
}

/** The documents of a bucket by id. */
type Bucket = ReadonlyMap<string, DocumentLeaves>

async function readBucket({ replica, call }: Side, buckets: number, bucket: number): Promise<Bucket> {
  const documents = new Map<string, DocumentLeaves>()
  for await (const page of replica.upkeep.scanDigestBucket({ bucketCount: buckets, bucket }, call)) {
    for (const document of page) documents.set(document.id, document)
  }
  return documents
}

/** Returns the documents of one replica with a leaf that is not a leaf on the other one, with these leaves. */
function differences(of: Bucket, other: Bucket): DocumentLeaves[] {
  return [...of.values()].flatMap(({ id, leaves }) => {
    const known = new Set(other.get(id)?.leaves.map(leaf => leaf.revision))
    const differing = leaves.filter(leaf => !known.has(leaf.revision))
    return differing.length === 0 ? [] : [{ id, leaves: differing }]
  })
}

/**
 * Copies leaves that the target lacks. The target may have a leaf of the source as an ancestor, because stemming has
 * removed the ancestors that would show it from the source. The source then gets the target's longer branches, unless
 * the document was repaired already: the next comparison shows whether that is enough.
 */
async function copyMissing(
  comparison: DigestComparison, source: Side, target: Side, documents: readonly DocumentLeaves[],
  repaired: Set<string>,
): Promise<void> {
  for (let at = 0; at < documents.length; at += questionDocuments) {
    const asked = documents.slice(at, at + questionDocuments)
      .map(({ id, leaves }) => ({ id, revisions: leaves.map(leaf => leaf.revision) }))
    const diffs = await target.replica.diffRevisions(asked, target.call)
    // Differences are rare, so documents are copied one at a time. This bounds memory although their sizes are unknown.
    for (const [index, { id, missing }] of diffs.entries()) {
      const lacking = new Set(missing)
      const replaced = repaired.has(id) ? [] : asked[index]!.revisions.filter(revision => !lacking.has(revision))
      const copied = missing.length > 0
        && await copy(comparison, source, target, { id, revisions: missing, latest: false })
      const joined = replaced.length > 0
        && await copy(comparison, target, source, { id, revisions: replaced, latest: true })
      if (copied || joined) repaired.add(id)
    }
  }
}

/** Returns false when the source has none of the revisions with its content. */
async function copy(
  { revsLimit, call }: DigestComparison, source: Side, target: Side, request: OpenRevisionsRequest,
): Promise<boolean> {
  const [opened] = await source.replica.openRevisions([request], source.call)
  const revisions = opened!.flatMap(each => each.kind === 'found' ? [each.revision] : [])
  const complete = await bringBlobs(source.replica.blobs, target.replica.blobs, revisions, call)
  if (complete.length === 0) return false
  await target.replica.storeRevisions({ revisions: complete, revsLimit }, target.call)
  return true
}
