import { sequenceBefore } from '@sectional/core'
import { ReplicaError } from '@sectional/core'
import type { CallContext } from '@sectional/core'
import type { ShardPosition } from '../replicas/changes-position.ts'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import type { Peer, ShardPlace } from '../replicas/replica-access.ts'
import { readersConfirmedFirst } from '../shard-calls/confirmed-readers.ts'
import { completeStanding } from '../shard-calls/replica-reports.ts'
import { asReplicaError, shardFailure } from '../replicas/replica-failures.ts'
import type { ReachedStanding, Standing } from '../replicas/replica-standings.ts'

/** A replica to read changes from, with the position at which to begin. */
export interface AttachedReplica {
  readonly standing: Standing
  /** The current sequence of the replica. */
  readonly sequence: number
  readonly since: number
}

/** The position at which a reader begins that has no position yet. */
export type FirstPlace = 'start' | 'end' | { readonly time: number }

export interface AttachOptions {
  readonly from: FirstPlace
  /** Nodes that must not be asked. Nodes that fail are added. */
  readonly failed: Set<string>
}

/**
 * Chooses the replica from which a reader continues. The first choice is the replica that it read before, or this
 * node's replica if the position names it and no row would be repeated there. Otherwise it is the answering replica
 * with the fewest changes left to read. The reader continues there at the sequence that its position names, or at the
 * sequence to which the replica can translate the position from its knowledge of the other replicas' logs. It starts at
 * the beginning only when neither knows the other. A reader with an empty position begins at the start, at the end, or
 * at a time, on the first replica that answers.
 *
 * @throws ApiError when no replica answers
 */
export async function attachReplica(
  scope: CoordinatorScope, place: ShardPlace, position: ShardPosition, options: AttachOptions, call: CallContext,
): Promise<AttachedReplica> {
  const found = await findReplica(scope, place, position, options, call)
  if (found.standing.source.all !== undefined) return found
  const completed = completeStanding(scope, found.standing, place, { requestId: call.requestId })
  return { ...found, standing: await unlessCancelled(completed, call) }
}

async function findReplica(
  scope: CoordinatorScope, place: ShardPlace, position: ShardPosition, options: AttachOptions, call: CallContext,
): Promise<AttachedReplica> {
  const readers = readersConfirmedFirst(scope, place).filter(peer => !options.failed.has(peer.node))
  // A position that all replicas have reached lists them in the order of nodes. The first of them need not be the one
  // that was read, nor be on this node.
  const local = readers.slice(0, readers[0]?.local && (position.isEmpty || position.isByNode) ? 1 : 0)
  const others = readers.slice(local.length)
  const isNamed = (peer: Peer): boolean => peer.node === position.node
  const ordered = [...local, ...others.filter(isNamed), ...others.filter(peer => !isNamed(peer))]
  const errors: ReplicaError[] = []
  let best: AttachedReplica | undefined
  /** This node's replica, when the position names it but another replica was read before. */
  let named: AttachedReplica | undefined
  for (const peer of ordered) {
    let reached: ReachedStanding
    let translated = 0
    let first = 0
    let repeatsNothing = false
    try {
      [reached, repeatsNothing] = await Promise.all([
        unlessCancelled(scope.standings.now(peer, place), call),
        named !== undefined && peer.node === position.node && hasAllRead(peer, named, position, call),
      ])
      if (position.isEmpty) {
        first = await firstSequence(peer, reached.sequence, options.from, call)
      } else if (mayKnowMore(position, reached)) {
        translated = await peer.replica.translateCheckpoints(position.checkpoints(), call)
      }
    } catch (error) {
      const failure = asReplicaError(error)
      if (failure.code === 'timeout') scope.readHealth.silent(peer.node)
      options.failed.add(peer.node)
      errors.push(failure)
      if (call.signal?.aborted) break
      continue
    }
    const { history } = reached.standing.source
    scope.histories.learn(history, peer.node)
    if (position.isEmpty) return { ...reached, since: first }
    // A sequence that is greater than the replica's is impossible: such a token was made up.
    const found = { ...reached, since: Math.min(Math.max(position.known(history) ?? 0, translated), reached.sequence) }
    if (position.history === history) return repeatsNothing ? named! : found
    if (peer.local && position.known(history) !== undefined) {
      if (hadAllRead(reached.standing, position)) return found
      named = found
    }
    if (best === undefined || left(found) < left(best)) best = found
  }
  if (best === undefined) throw shardFailure(errors)
  return best
}

/**
 * Returns true when the replica is known to have had every change that the reader has read, at the sequence that the
 * position names. Then no row after that sequence is repeated.
 */
function hadAllRead({ source }: Standing, position: ShardPosition): boolean {
  return source.sequence <= position.known(source.history)!
    && (source.seen[position.history!] ?? 0) >= position.sequence
}

/**
 * Answers the same question by asking the replica that was read. If that replica has begun a new history meanwhile,
 * rows may be repeated, but none is missed.
 */
async function hasAllRead(
  read: Peer, { standing: { source: { history } }, since }: AttachedReplica, position: ShardPosition,
  call: CallContext,
): Promise<boolean> {
  return await read.replica.translateCheckpoints([{ history, sequence: since }], call) >= position.sequence
}

/**
 * Returns true when the replica may be able to translate the reader's position to a later sequence than the position
 * names.
 */
function mayKnowMore(
  position: ShardPosition, { standing: { source: { history } }, sequence }: ReachedStanding,
): boolean {
  return position.history !== history && position.known(history) !== sequence
}

async function firstSequence(
  { replica }: Peer, sequence: number, from: FirstPlace, call: CallContext,
): Promise<number> {
  if (typeof from === 'string') return from === 'end' ? sequence : 0
  return sequenceBefore(await replica.timeSpans({ clear: false }, call), from.time, sequence)
}

function left({ sequence, since }: AttachedReplica): number {
  return sequence - since
}

/** The result is shared with other callers, so that cancelling one caller must not cancel the call. */
function unlessCancelled<T>(work: Promise<T>, { signal }: CallContext): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => { reject(new ReplicaError('cancelled', 'the caller has cancelled the call')) }
    signal?.addEventListener('abort', onAbort, { once: true })
    work.then(resolve, reject).finally(() => signal?.removeEventListener('abort', onAbort))
    if (signal?.aborted) onAbort()
  })
}
