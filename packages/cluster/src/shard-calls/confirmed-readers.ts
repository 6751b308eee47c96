import { newestPosition } from '@sectional/core'
import type { CallContext } from '@sectional/core'
import type { OperationContext } from '../contracts/coordinator.ts'
import type { Peer, ShardPlace } from '../replicas/replica-access.ts'
import type { CoordinatorScope } from './coordinator-scope.ts'

export interface ConfirmedReaders {
  /** The number of the last write that the query must contain (`UnconfirmedWrites.newest`). */
  readonly newest: number
  /** Returns false for replicas that have failed. */
  readonly isUsable: (peer: Peer) => boolean
  /** Monotonic time in milliseconds at which the wait ends. */
  readonly deadline: number
}

type ReaderScope = Pick<CoordinatorScope, 'access' | 'background' | 'options' | 'runtime' | 'unconfirmed'>

/**
 * Returns the replicas of a shard in the order in which they are read, but those that may lack a write which this node
 * has acknowledged come last. A request that reads one replica then contains what its client has written through this
 * node. It does not wait: when all replicas lack some write, they are read in the usual order.
 */
export function readersConfirmedFirst(scope: ReaderScope, place: ShardPlace): readonly Peer[] {
  const readers = scope.access.readers(place)
  const { newest } = scope.unconfirmed
  const behind = readers.filter(({ node }) => scope.unconfirmed.isBehind(place.id, node, newest))
  if (behind.length === 0) return readers
  askForProof(scope, place, readers.slice(0, 1))
  return [...readers.filter(peer => !behind.includes(peer)), ...behind]
}

/**
 * Returns the replicas of a shard that have every write which this node had acknowledged when a query began, in the
 * order in which they are read. When no replica has all of them, it waits until one has received what is under way to
 * it, or what it missed.
 *
 * The result is empty if no usable replica is known to have all writes, nor expected to have them soon. This happens
 * only when replicas that confirmed writes have failed or cannot be reached. The query then reads the replicas that are
 * left, as a read of a document does.
 */
export async function confirmedReaders(
  scope: ReaderScope, place: ShardPlace, { newest, isUsable, deadline }: ConfirmedReaders, context: OperationContext,
): Promise<readonly Peer[]> {
  const { access, runtime: { clock }, unconfirmed, options: { missedWaitMs } } = scope
  for (;;) {
    const readers = access.readers(place).filter(isUsable)
    const confirmed = readers.filter(({ node }) => !unconfirmed.isBehind(place.id, node, newest))
    // The first reader is usually this node's own replica, so it is worth asking whether it is up to date again.
    askForProof(scope, place, confirmed.length > 0 ? readers.slice(0, 1) : readers)
    if (confirmed.length > 0 || context.signal.aborted || clock.monotonic() >= deadline) return confirmed
    if (!readers.some(({ node }) => unconfirmed.isCatchingUp(place.id, node, missedWaitMs))) return []
    await changeOrPause(scope, context.signal)
  }
}

/** Asks those of the replicas that missed writes, and were not asked recently, whether they have received them. */
function askForProof(scope: ReaderScope, place: ShardPlace, peers: readonly Peer[]): void {
  for (const peer of peers) {
    if (!scope.unconfirmed.mayAsk(place.id, peer.node, scope.options.missedPollMs)) continue
    scope.background.track(prove(scope, place, peer))
  }
}

/**
 * Asks a replica that missed writes whether it has received them. It has if it has the changes of all other replicas up
 * to the positions that they had when it was first asked, because some of them confirmed each write. Never rejects.
 */
async function prove(
  { access, options, unconfirmed }: ReaderScope, place: ShardPlace, { node, replica }: Peer,
): Promise<void> {
  const call: CallContext = { timeoutMs: options.stateTimeoutMs, requestId: 'missed-writes' }
  const others = access.peers(access.now(place)).filter(other => other.active && other.node !== node)
  try {
    const proof = await unconfirmed.proof(place.id, node, () =>
      Promise.all(others.map(other => newestPosition(other.replica, call))))
    if (proof === undefined) return
    const { seen } = await replica.upkeep.replicaInfo(call)
    const hasAll = proof.positions.every(({ history, sequence }) => (seen[history] ?? 0) >= sequence)
    if (hasAll) unconfirmed.proved(place.id, node, proof)
  } catch {
    // A replica that does not answer proves nothing. The caller asks again until it gives up.
  }
}

/** Waits for a change, for `missedPollMs`, or until the query has ended. */
function changeOrPause(
  { runtime: { clock }, unconfirmed, options }: ReaderScope, signal: AbortSignal,
): Promise<void> {
  return new Promise(resolve => {
    const go = (): void => {
      timer.cancel()
      signal.removeEventListener('abort', go)
      resolve()
    }
    const timer = clock.setTimer(options.missedPollMs, go)
    signal.addEventListener('abort', go, { once: true })
    void unconfirmed.changed().then(go)
  })
}
