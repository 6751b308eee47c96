import { sequenceBefore } from '@sectional/core'
import { ReplicaError } from '@sectional/core'
import type { CallContext } from '@sectional/core'
import type { ShardPosition } from '../replicas/changes-position.ts'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import type { Peer, ShardPlace } from '../replicas/replica-access.ts'
import { completeStanding } from '../shard-calls/replica-meetings.ts'
import { asReplicaError, shardFailure } from '../replicas/replica-failures.ts'
import type { ReachedStanding, Standing } from '../replicas/replica-standings.ts'

/** A replica to read changes from, and from where on. */
export interface AttachedReplica {
  readonly standing: Standing
  /** Where it stands now. */
  readonly sequence: number
  readonly since: number
}

/** Where a reader begins who has no place yet. */
export type FirstPlace = 'start' | 'end' | { readonly time: number }

export interface AttachOptions {
  readonly from: FirstPlace
  /** Nodes not to ask; those that fail are added. */
  readonly failed: Set<string>
}

/**
 * Finds a replica on which a reader can go on: the one that it read before, or this node's where the place names it and
 * nothing would come again there; else, of all that answer, the one with the least left to read. There it goes on where its place says, or where that replica knows its own changes to
 * stand in the logs that the place names; from the beginning only when neither knows the other. An empty place
 * begins at the start, the end or a time of the first replica that answers.
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
  const readers = scope.access.readers(place).filter(peer => !options.failed.has(peer.node))
  // A place that all replicas have reached names them by node: the first of them may not have been read, nor be near.
  const local = readers.slice(0, readers[0]?.local && (position.isEmpty || position.isByNode) ? 1 : 0)
  const others = readers.slice(local.length)
  const ordered = [...local, ...others.filter(peer => peer.node === position.node), ...others.filter(peer => peer.node !== position.node)]
  const errors: ReplicaError[] = []
  let best: AttachedReplica | undefined
  /** The one on this node, where the place names it, but as another one than was read. */
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
      if (position.isEmpty) first = await firstSequence(peer, reached.sequence, options.from, call)
      else if (mayKnowMore(position, reached)) translated = await peer.replica.translateCheckpoints(position.checkpoints(), call)
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
    // Nobody has read what is not written: such a token was made up.
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
 * Whether the replica is known to have had all that the reader has read when it stood where the place names it: then
 * nothing is repeated behind that.
 */
function hadAllRead({ source }: Standing, position: ShardPosition): boolean {
  return source.sequence <= position.known(source.history)! && (source.seen[position.history!] ?? 0) >= position.sequence
}

/** The same, asked of the replica that was read. If that has begun another life meanwhile, rows may repeat; none is missed. */
async function hasAllRead(read: Peer, { standing: { source: { history } }, since }: AttachedReplica, position: ShardPosition, call: CallContext): Promise<boolean> {
  return await read.replica.translateCheckpoints([{ history, sequence: since }], call) >= position.sequence
}

/** Whether the replica may have more of what the reader has read than the place says. */
function mayKnowMore(position: ShardPosition, { standing: { source: { history } }, sequence }: ReachedStanding): boolean {
  return position.history !== history && position.known(history) !== sequence
}

async function firstSequence({ replica }: Peer, sequence: number, from: FirstPlace, call: CallContext): Promise<number> {
  if (typeof from === 'string') return from === 'end' ? sequence : 0
  return sequenceBefore(await replica.timeSpans({ clear: false }, call), from.time, sequence)
}

function left({ sequence, since }: AttachedReplica): number {
  return sequence - since
}

/** The answer is shared, so that one caller's end must not end the call. */
function unlessCancelled<T>(work: Promise<T>, { signal }: CallContext): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => { reject(new ReplicaError('cancelled', 'the caller has cancelled the call')) }
    signal?.addEventListener('abort', onAbort, { once: true })
    work.then(resolve, reject).finally(() => signal?.removeEventListener('abort', onAbort))
    if (signal?.aborted) onAbort()
  })
}
