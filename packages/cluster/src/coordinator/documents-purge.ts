import { ApiError, formatRevision, mapBounded } from '@sectional/core'
import type { Branch, Purge, ReplicaError } from '@sectional/core'
import type { Timer } from '@sectional/runtime'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import { readCall, writeCall } from '../shard-calls/coordinator-scope.ts'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import type {
  PurgeOutcome, PurgeRequest, PurgedInfo, OperationContext, WriteOptions,
} from '../contracts/coordinator.ts'
import type { Peer, ShardPlace } from '../replicas/replica-access.ts'
import { asReplicaError, shardFailure } from '../replicas/replica-failures.ts'
import { collectReplies } from '../shard-calls/reply-collection.ts'
import { branchRevisions, mergeBranches } from '../documents/revision-merge.ts'
import { WriteTally } from '../documents/write-tally.ts'

const uuidBytes = 16
/** Limit of the ancestors that a purge names with a revision. Older ones are unlikely to be leaves anywhere. */
const ancestorsMax = 1000
/** Purges in one call to a replica. */
const purgesTogether = 100

/**
 * Removes revisions from every replica. The purge first reads the ancestors of the revisions, so that a replica that
 * lags loses these too. Then each replica applies the purge, now or when anti-entropy brings it.
 *
 * A revision is neither purged nor recorded when a majority of the replicas does not know it, or knows it as an
 * ancestor of other revisions: a purge without the ancestors would leave an older revision as a leaf on a replica that
 * lags.
 *
 * @returns one outcome per request, in order
 * @throws ApiError 503 when the replicas that answer do not know a revision and are not a majority; nothing was purged
 */
export async function purgeDocuments(
  scope: CoordinatorScope, db: DatabaseRecord, requests: readonly PurgeRequest[], options: WriteOptions,
  context: OperationContext,
): Promise<readonly PurgeOutcome[]> {
  const purges = await mapBounded(
    requests, scope.options.requestCallsMax, request => learnPurge(scope, db, request, context),
  )
  const groups = new Map<ShardPlace, number[]>()
  for (const [index, { id, paths }] of purges.entries()) {
    if (paths.length === 0) continue
    const place = scope.access.placeOf(db, id)
    const group = groups.get(place)
    if (group === undefined) groups.set(place, [index])
    else group.push(index)
  }
  const outcomes = requests.map((): PurgeOutcome => ({ kind: 'purged', revisions: [], accepted: false }))
  await Promise.all([...groups].map(async ([place, indexes]) => {
    for (let at = 0; at < indexes.length; at += purgesTogether) {
      const part = indexes.slice(at, at + purgesTogether)
      const { verdict, removed, errors } = await distributePurges(
        scope, place, part.map(index => purges[index]!), options.w, context,
      )
      if (verdict === 'failed') throw shardFailure(errors)
      for (const [i, index] of part.entries()) {
        const revisions = [...new Set(requests[index]!.revisions)].filter(revision => removed[i]!.has(revision))
        outcomes[index] = { kind: 'purged', revisions, accepted: verdict === 'accepted' }
      }
    }
  }))
  return outcomes
}

/** Returns the purge of those revisions that are leaves, each with its ancestors. */
async function learnPurge(
  scope: CoordinatorScope, db: DatabaseRecord, { id, revisions }: PurgeRequest, context: OperationContext,
): Promise<Purge> {
  const uuid = Buffer.from(scope.runtime.random.bytes(uuidBytes)).toString('hex')
  if (revisions.length === 0) return { uuid, id, paths: [] }
  const place = scope.access.placeOf(db, id)
  const call = readCall(scope, context)
  const { replies, met } = await collectReplies(
    scope, place, undefined, peer => peer.replica.openDocument({ id, body: false, tree: true }, call),
  )
  const { branches } = mergeBranches(replies.flatMap(({ value }) => value?.tree ?? []))
  if (!met) {
    const known = new Set(branches.flatMap(branchRevisions))
    const unknown = revisions.find(revision => !known.has(revision))
    if (unknown !== undefined) throw unknownToMinority(id, unknown)
  }
  const byLeaf = new Map(branches.map((branch: Branch) => [branchRevisions(branch)[0]!, branch.path]))
  const paths = [...new Set(revisions)].flatMap(revision => byLeaf.get(revision) ?? [])
  return { uuid, id, paths: paths.map(({ start, ids }) => ({ start, ids: ids.slice(0, ancestorsMax) })) }
}

function unknownToMinority(id: string, revision: string): ApiError {
  const reason = `Nothing was purged: revision ${revision} of ${JSON.stringify(id)} is unknown to the replicas that `
    + 'answer, and most do not answer. Try again when they do.'
  return new ApiError('service_unavailable', reason, { headers: { 'Retry-After': '5' } })
}

interface PurgeDistribution {
  readonly verdict: 'met' | 'accepted' | 'failed'
  /** The revisions of each purge that any answering replica removed. */
  readonly removed: readonly ReadonlySet<string>[]
  readonly errors: readonly ReplicaError[]
}

/**
 * Applies purges on all replicas of a shard. Resolves when every replica has answered, or a short time after w of them
 * have recorded the purges; the other calls continue in the background. The short wait is for reads: they show what any
 * replica has, and a replica that is late still has the purged revisions.
 */
function distributePurges(
  scope: CoordinatorScope, place: ShardPlace, purges: readonly Purge[], w: number | undefined,
  context: OperationContext,
): Promise<PurgeDistribution> {
  return new Promise(resolve => {
    const removed = purges.map(() => new Set<string>())
    const errors: ReplicaError[] = []
    const tally = new WriteTally(scope.access, place, w)
    const asked = new Set<string>()
    let replied = 0
    let patience: Timer | undefined
    let settled = false
    const settle = (): void => {
      const verdict = tally.verdict()
      if (settled || verdict === 'waiting') return
      settled = true
      patience?.cancel()
      resolve({ verdict, removed: removed.map(set => new Set(set)), errors })
    }
    const purgeOn = async (peer: Peer): Promise<void> => {
      try {
        const reply = await peer.replica.purgeDocuments({ purges }, writeCall(scope.options.storeTimeoutMs, context))
        reply.forEach((revisions, i) => { for (const revision of revisions) removed[i]!.add(revision) })
        tally.durable(peer.node)
      } catch (error) {
        errors.push(asReplicaError(error))
        scope.reportMissed(place.id, peer.node)
        tally.failed(peer.node)
      }
      replied++
      if (settled) return
      const now = scope.access.now(place)
      if (now !== place) send(now)
      if (replied === asked.size) settle()
      else if (tally.verdict() !== 'waiting') {
        patience ??= scope.runtime.clock.setTimer(scope.options.reviewTimeoutMs, settle)
      }
    }
    const send = (to: ShardPlace): void => {
      for (const peer of scope.access.peers(to)) {
        if (asked.has(peer.node)) continue
        asked.add(peer.node)
        scope.background.track(purgeOn(peer))
      }
    }
    send(place)
  })
}

/** Returns every purge that the asked replicas of the shards know, in no particular order. */
export async function purgedInfos(
  scope: CoordinatorScope, db: DatabaseRecord, context: OperationContext,
): Promise<readonly PurgedInfo[]> {
  const call = readCall(scope, context)
  const shards = await mapBounded(scope.access.places(db), scope.options.requestCallsMax, async place => {
    const { replies } = await collectReplies(scope, place, undefined, async peer => {
      const found: Purge[] = []
      for await (const page of peer.replica.scanPurges(0, call)) found.push(...page)
      return found
    })
    return [...new Map(replies.flatMap(({ value }) => value).map(purge => [purge.uuid, purge])).values()]
  })
  return shards.flat().map(({ id, paths }) => ({
    id, revisions: paths.map(({ start, ids }) => formatRevision({ generation: start, hash: ids[0]! })),
  }))
}
