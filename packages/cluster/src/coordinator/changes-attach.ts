import { sequenceBefore } from '@sectional/core'
import type { CallContext, ReplicaError, ReplicaInfo } from '@sectional/core'
import type { ReplicaSource, ShardPosition } from './changes-position.ts'
import type { CoordinatorScope } from './coordinator-scope.ts'
import type { Peer, ShardPlace } from './replica-access.ts'
import { asReplicaError, shardFailure } from './replica-failures.ts'

/** A replica to read changes from, and from where on. */
export interface AttachedReplica {
  readonly peer: Peer
  readonly source: ReplicaSource
  readonly since: number
  /** Documents that it lists in all. */
  readonly total: number
  /** Monotonic milliseconds when it was asked. */
  readonly at: number
}

/** Where a reader begins who has no place yet. */
export type FirstPlace = 'start' | 'end' | { readonly time: number }

/**
 * Finds a replica on which a reader can go on: the one that it read before, else, of all that answer, the one with
 * the least left to read. There it goes on where its place says, or where that replica knows its own changes to
 * stand in the logs that the place names; from the beginning only when neither knows the other. An empty place
 * begins at the start, the end or a time of the first replica that answers.
 *
 * @param failed nodes not to ask; those that fail are added
 * @throws ApiError when no replica answers
 */
export async function attachReplica(
  scope: CoordinatorScope, place: ShardPlace, position: ShardPosition, options: { readonly from: FirstPlace; readonly failed: Set<string> }, call: CallContext,
): Promise<AttachedReplica> {
  const readers = scope.access.readers(place).filter(peer => !options.failed.has(peer.node))
  const ordered = [...readers.filter(peer => peer.node === position.node), ...readers.filter(peer => peer.node !== position.node)]
  const errors: ReplicaError[] = []
  let best: AttachedReplica | undefined
  for (const peer of ordered) {
    let info: ReplicaInfo
    let translated = 0
    let first = 0
    try {
      info = await peer.replica.replicaInfo(call)
      if (position.isEmpty) first = await firstSequence(peer, info, options.from, call)
      else if (position.history !== info.history) translated = await peer.replica.translateCheckpoints(position.checkpoints(), call)
    } catch (error) {
      const failure = asReplicaError(error)
      if (failure.code === 'timeout') scope.readHealth.silent(peer.node)
      options.failed.add(peer.node)
      errors.push(failure)
      continue
    }
    scope.histories.learn(info.history, peer.node)
    const attached = (since: number): AttachedReplica => attachedTo(peer, info, since, scope.runtime.clock.monotonic())
    if (position.isEmpty) return attached(first)
    // Nobody has read what is not written: such a token was made up.
    const found = attached(Math.min(Math.max(position.known(info.history) ?? 0, translated), info.sequence))
    if (position.history === info.history) return found
    if (best === undefined || left(found) < left(best)) best = found
  }
  if (best === undefined) throw shardFailure(errors)
  return best
}

async function firstSequence({ replica }: Peer, { sequence }: ReplicaInfo, from: FirstPlace, call: CallContext): Promise<number> {
  if (typeof from === 'string') return from === 'end' ? sequence : 0
  return sequenceBefore(await replica.timeSpans({ clear: false }, call), from.time, sequence)
}

function left({ source, since }: AttachedReplica): number {
  return source.sequence - since
}

function attachedTo(peer: Peer, { history, sequence, seen, documentCount, deletedCount }: ReplicaInfo, since: number, at: number): AttachedReplica {
  return { peer, at, source: { node: peer.node, history, sequence, seen }, since, total: documentCount + deletedCount }
}
