import type { IndexDefinition, ReplicaCheckpoint, ReplicaError, RequiredSequence } from '@sectional/core'
import type { Timer } from '@sectional/runtime'
import type { Peer, ShardPlace } from '../replicas/replica-access.ts'
import { asReplicaError, shardFailure } from '../replicas/replica-failures.ts'
import { unlessSilent } from '../shard-calls/silence-watch.ts'
import { IndexBehindError } from './index-behind-error.ts'
import type { BuildProgress } from './index-behind-error.ts'
import type { ViewScope } from './view-scope.ts'

/** An index that has reached the sequence that its replica had when it was asked. */
export interface ReadyIndex { readonly peer: Peer; readonly required: ReplicaCheckpoint }

export interface AwaitedBuild {
  readonly scope: ViewScope
  readonly place: ShardPlace
  readonly definition: IndexDefinition
  /** Monotonic time in milliseconds at which the wait ends. */
  readonly deadline: number
  readonly signal: AbortSignal
  readonly requestId: string
}

/**
 * Sends the definition to a replica and waits until its index is up to date. When the replica fails, or is behind after
 * `buildHedgeMs`, the next one is asked, too, and the first index that is up to date wins. A query thus does not wait
 * for a long build when another replica has already built the index. The other builds continue, because each replica
 * needs its index.
 *
 * @param peers in the order in which they are asked; at least one
 * @throws IndexBehindError when the deadline has passed; ApiError when all replicas have failed
 */
export async function firstReadyIndex(build: AwaitedBuild, peers: readonly Peer[]): Promise<ReadyIndex> {
  const ended = new AbortController()
  const signal = AbortSignal.any([build.signal, ended.signal])
  const { runtime: { clock }, viewOptions: { buildHedgeMs } } = build.scope
  const errors: (ReplicaError | IndexBehindError)[] = []
  let asked = 0
  let timer: Timer | undefined
  try {
    return await new Promise((resolve, reject) => {
      const askNext = (): void => {
        timer?.cancel()
        const peer = ended.signal.aborted ? undefined : peers[asked]
        if (peer === undefined) return
        asked++
        if (asked < peers.length) timer = clock.setTimer(buildHedgeMs, askNext)
        reachNewest({ ...build, signal }, peer).then(resolve, (error: ReplicaError | IndexBehindError) => {
          errors.push(error)
          if (errors.length === peers.length) reject(raceFailure(errors))
          else askNext()
        })
      }
      askNext()
    })
  } finally {
    timer?.cancel()
    ended.abort()
  }
}

/** Calls the replica again and again until its index has the sequence that the replica had at the first call. */
async function reachNewest(
  { scope, place, definition, deadline, signal, requestId }: AwaitedBuild, peer: Peer,
): Promise<ReadyIndex> {
  const { runtime: { clock }, options: { scanPageTimeoutMs }, viewOptions: { buildWaitMs }, readHealth } = scope
  const indexes = scope.indexes.indexes(peer.node, place.id)
  let through: RequiredSequence = 'newest'
  let history: string | undefined
  for (;;) {
    const waitMs = Math.max(0, Math.min(buildWaitMs, Math.ceil(deadline - clock.monotonic())))
    const call = { timeoutMs: waitMs + scanPageTimeoutMs, signal, requestId, ...(history !== undefined && { history }) }
    let progress: BuildProgress
    try {
      const answer = indexes.buildIndex({ definition, through, waitMs }, call)
      const reply = await (peer.local ? answer : unlessSilent(scope, peer, answer))
      readHealth.answered(peer.node)
      const { position, readSequence } = reply
      if (position.sequence >= reply.through) {
        return { peer, required: { history: position.history, sequence: reply.through } }
      }
      ({ through } = reply)
      ;({ history } = position)
      progress = { done: Math.min(readSequence, through), total: through }
    } catch (error) {
      const failure = asReplicaError(error)
      if (failure.code === 'timeout') readHealth.silent(peer.node)
      const wasReplaced = failure.code === 'other_history' && history !== undefined
      if (!wasReplaced || clock.monotonic() >= deadline) throw failure
      // The replica was replaced between two calls. The new one may have other sequences, so it is asked anew.
      through = 'newest'
      history = undefined
      continue
    }
    if (clock.monotonic() >= deadline) throw new IndexBehindError(progress)
  }
}

/** A build that is under way is worth waiting for, whatever the failures of the other replicas. */
function raceFailure(errors: readonly (ReplicaError | IndexBehindError)[]): Error {
  const behind = errors.filter(error => error instanceof IndexBehindError)
  if (behind.length === 0) return shardFailure(errors as readonly ReplicaError[])
  const left = ({ progress: { done, total } }: IndexBehindError): number => total - done
  return behind.reduce((best, each) => left(each) < left(best) ? each : best)
}
