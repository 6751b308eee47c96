import type { CallContext, ReplicaError, ReplicaErrorCode } from '@sectional/core'
import { confirmedReaders, readersConfirmedFirst } from './confirmed-readers.ts'
import type { CoordinatorScope } from './coordinator-scope.ts'
import type { OperationContext } from '../contracts/coordinator.ts'
import type { Peer, ShardPlace } from '../replicas/replica-access.ts'
import { nextPage, pageTimeoutMs, releasePages } from './replica-pages.ts'
import { asReplicaError, shardFailure } from '../replicas/replica-failures.ts'

/** The rest of a scan of one shard. */
export interface ScanRest<Position> {
  /** The position at which to begin, in the direction of the scan; absent: at the first row. */
  readonly start?: Position
  /** Largest number of rows to read; absent: all. */
  readonly limit?: number
}

/** A scan of rows of one kind, in an order that is equal on all replicas of a shard. */
export interface ShardScan<Row, Position> extends ScanRest<Position> {
  /** Reads from one replica. The deadline of `call` applies to each page. */
  readonly open: (peer: Peer, rest: ScanRest<Position>, call: CallContext) => AsyncIterable<readonly Row[]>
  /** Returns the position directly after a row, at which another replica can continue. */
  readonly behind: (row: Row) => Position
  /** Returns by how many the rows of a page reduce the limit. Absent: by one for each row. */
  readonly countOf?: (rows: readonly Row[]) => number
  /** An error with this code ends the scan, because every replica would answer with it. */
  readonly failsWith?: ReplicaErrorCode
  /**
   * Milliseconds to wait for a replica that has every write which this node had acknowledged when the scan began.
   * Absent: when each replica may lack one of them, the scan reads one without a wait.
   */
  readonly confirmedWaitMs?: number
}

/**
 * Returns the rows of one shard in order from one replica. When that replica fails or is silent, the next one continues
 * after the last row.
 *
 * @throws ApiError when no replica is left
 */
export async function* scanShard<Row, Position>(
  scope: CoordinatorScope, place: ShardPlace, scan: ShardScan<Row, Position>, context: OperationContext,
): AsyncGenerator<readonly Row[]> {
  const { open, behind, countOf, failsWith, start, limit } = scan
  const readers = readersOf(scope, place, scan, context)
  const errors: ReplicaError[] = []
  const failed = new Set<string>()
  let from = start
  let left = limit
  for (;;) {
    const peer = (await readers(failed))[0]
    if (peer === undefined || context.signal.aborted) throw shardFailure(errors)
    const usable = scope.access.readers(place).filter(({ node }) => !failed.has(node))
    const call: CallContext = {
      timeoutMs: pageTimeoutMs(scope, usable.length), signal: context.signal, requestId: context.requestId,
    }
    const range = { ...(from !== undefined && { start: from }), ...(left !== undefined && { limit: left }) }
    const pages = open(peer, range, call)[Symbol.asyncIterator]()
    try {
      for (;;) {
        const page = await nextPage(scope, peer, pages)
        if (page === undefined) return
        const last = page.at(-1)
        if (last === undefined) continue
        failed.clear()
        from = behind(last)
        if (left !== undefined) left -= countOf?.(page) ?? page.length
        yield page
        if (left !== undefined && left <= 0) return
      }
    } catch (error) {
      const failure = asReplicaError(error)
      if (failure.code === failsWith) throw shardFailure([failure])
      if (failure.code === 'timeout') scope.readHealth.silent(peer.node)
      failed.add(peer.node)
      errors.push(failure)
    } finally {
      // Do not wait for the replica, because it may be silent.
      scope.background.track(releasePages(pages))
    }
  }
}

/** Returns the function that selects the replicas to read, without those that have failed. */
function readersOf(
  scope: CoordinatorScope, place: ShardPlace, { confirmedWaitMs }: Pick<ShardScan<never, never>, 'confirmedWaitMs'>,
  context: OperationContext,
): (failed: ReadonlySet<string>) => Promise<readonly Peer[]> {
  const { newest } = scope.unconfirmed
  const deadline = scope.runtime.clock.monotonic() + (confirmedWaitMs ?? 0)
  return async failed => {
    const isUsable = ({ node }: Peer): boolean => !failed.has(node)
    const confirmed = confirmedWaitMs === undefined
      ? []
      : await confirmedReaders(scope, place, { newest, isUsable, deadline }, context)
    return confirmed.length > 0 ? confirmed : readersConfirmedFirst(scope, place).filter(isUsable)
  }
}
