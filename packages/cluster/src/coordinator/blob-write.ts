import { ReplicaError } from '@sectional/core'
import type { WrittenBlob } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import { withDurable, withFailedWrite, writeQuorum, writeVerdict } from '../quorum/write-quorum.ts'
import { provideBlobs } from '../attachments/blob-transfer.ts'
import { ChunkBranch } from '../attachments/chunk-branch.ts'
import { writeCall } from '../shard-calls/coordinator-scope.ts'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import type { OperationContext, WriteOptions } from '../contracts/coordinator.ts'
import type { Peer, ShardPlace } from '../replicas/replica-access.ts'
import { asReplicaError, shardFailure } from '../replicas/replica-failures.ts'
import { SilenceWatch, unlessSilent } from '../shard-calls/silence-watch.ts'

/** One upload of the content to one replica. */
interface BlobBranch {
  readonly peer: Peer
  readonly branch: ChunkBranch
  readonly written: Promise<WrittenBlob>
  /** Gives up the upload to a silent replica: nothing more is sent to it, and no caller waits for it. */
  readonly abandon: () => void
}

/**
 * Streams content to all reachable replicas of a document's shard at the same time. The slowest replica sets the pace;
 * a silent one (silence-watch.ts) is abandoned. Resolves when w replicas have the content on disk, or when all have
 * replied. A replica that lacks the content receives it later, together with the document.
 *
 * @throws ApiError when no replica has the content
 * @throws the error of `chunks`; no replica then keeps the content
 */
export async function writeBlob(
  scope: CoordinatorScope, db: DatabaseRecord, id: string, chunks: AsyncIterable<Uint8Array>, { w }: WriteOptions,
  context: OperationContext,
): Promise<WrittenBlob> {
  const place = scope.access.placeOf(db, id)
  const peers = scope.access.peers(place).filter(peer => scope.access.isReachable(peer.node))
  const failures: unknown[] = []
  const call = writeCall(scope.options.storeTimeoutMs, context)
  const branches = peers.map((peer): BlobBranch => {
    const branch = new ChunkBranch()
    const upload = peer.replica.blobs.writeBlob(branch, call)
    let abandon = (): void => {}
    const silent = new Promise<never>((_, reject) => {
      abandon = () => {
        const silence = new ReplicaError('timeout', `${peer.node} is silent`)
        reject(silence)
        branch.abandon(silence)
      }
    })
    scope.background.track(upload.then(() => {}, () => {}))
    const written = Promise.race([upload, silent])
    written.catch((error: unknown) => {
      failures.push(error)
      branch.leave()
    })
    return { peer, branch, written, abandon }
  })
  try {
    await pump(scope, chunks, branches)
  } catch (error) {
    for (const { branch } of branches) branch.fail(error)
    await Promise.allSettled(branches.map(({ written }) => written))
    throw error
  }
  return await confirmed(scope, place, branches, w, failures)
}

async function pump(
  scope: CoordinatorScope, chunks: AsyncIterable<Uint8Array>, branches: readonly BlobBranch[],
): Promise<void> {
  for await (const chunk of chunks) {
    const open = branches.filter(({ branch }) => !branch.left)
    if (open.length === 0) break
    for (const { branch } of open) branch.add(chunk)
    for (const { peer, branch, abandon } of open) {
      const room = branch.room()
      if (room === undefined) continue
      const watch = new SilenceWatch(scope, [peer], abandon)
      await room
      watch.cancel()
    }
  }
  for (const { branch } of branches) branch.end()
}

/** Resolves as soon as w replicas have the content, and rejects when all have failed. */
function confirmed(
  scope: CoordinatorScope, place: ShardPlace, writes: readonly BlobBranch[], w: number | undefined,
  failures: readonly unknown[],
): Promise<WrittenBlob> {
  const watch = new SilenceWatch(
    scope, writes.map(({ peer }) => peer), silent => writes.find(({ peer }) => peer === silent)?.abandon(),
  )
  return new Promise((resolve, reject) => {
    let quorum = writeQuorum(place.activeCount, w)
    const reachable = writes.filter(({ peer }) => peer.active).length
    for (let absent = place.activeCount - reachable; absent > 0; absent--) quorum = withFailedWrite(quorum)
    let result: WrittenBlob | undefined
    const settle = (): void => {
      const verdict = writeVerdict(quorum)
      if (verdict === 'waiting') return
      watch.cancel()
      if (result !== undefined) resolve(result)
      else reject(shardFailure(failures.map(asReplicaError)))
    }
    for (const { peer, written } of writes) {
      scope.background.track(written.finally(() => watch.answered(peer)).then(blob => {
        result = blob
        if (peer.active) quorum = withDurable(quorum)
        settle()
      }, () => {
        if (peer.active) quorum = withFailedWrite(quorum)
        settle()
      }))
    }
    settle()
  })
}

/** Renews the lease of content on every replica that answers, because its document is not stored yet. */
export async function keepBlobs(
  scope: CoordinatorScope, db: DatabaseRecord, id: string, hashes: readonly string[], context: OperationContext,
): Promise<void> {
  const call = writeCall(scope.options.storeTimeoutMs, context)
  const peers = scope.access.peers(scope.access.placeOf(db, id)).filter(peer => scope.access.isReachable(peer.node))
  await Promise.allSettled(peers.map(peer => unlessSilent(scope, peer, peer.replica.blobs.hasBlobs(hashes, call))))
}

/**
 * Makes content that documents of one id reference available to another id, whose shard may be on other nodes.
 *
 * @throws ApiError when no replica of the other id's shard has all of the content afterwards
 */
export async function shareBlobs(
  scope: CoordinatorScope, db: DatabaseRecord, fromId: string, toId: string, hashes: readonly string[],
  context: OperationContext,
): Promise<void> {
  const from = scope.access.placeOf(db, fromId)
  const to = scope.access.placeOf(db, toId)
  if (hashes.length === 0 || from === to) return
  const targets = scope.access.peers(to).filter(peer => scope.access.isReachable(peer.node))
  const outcomes = await Promise.allSettled(
    targets.map(peer => provideBlobs(scope, peer, hashes, from, context.requestId, { isElsewhere: true })),
  )
  if (outcomes.some(outcome => outcome.status === 'fulfilled')) return
  throw shardFailure(outcomes.flatMap(outcome => outcome.status === 'rejected' ? [asReplicaError(outcome.reason)] : []))
}
