import type { CallContext, ReplicaError } from '@sectional/core'
import type { CoordinatorScope } from './coordinator-scope.ts'
import type { OperationContext } from '../contracts/coordinator.ts'
import type { Peer, ShardPlace } from '../replicas/replica-access.ts'
import { asReplicaError, shardFailure } from '../replicas/replica-failures.ts'

/** What is left to read of one shard. */
export interface ScanRest<Position> {
  /** Where to begin, in the direction of the scan; absent: at the first row. */
  readonly start?: Position
  /** Rows to read at most; absent: all. */
  readonly limit?: number
}

/** Rows of one kind in one order, which every replica of a shard gives alike. */
export interface ShardScan<Row, Position> extends ScanRest<Position> {
  /** Reads from one replica. The deadline of `call` is that of each page. */
  readonly open: (peer: Peer, rest: ScanRest<Position>, call: CallContext) => AsyncIterable<readonly Row[]>
  /** The position directly behind a row, from which another replica goes on. */
  readonly behind: (row: Row) => Position
}

/**
 * Rows of one shard in order from one replica. When it fails or falls silent, the next one goes on behind the last row.
 *
 * @throws ApiError when no replica is left
 */
export async function* scanShard<Row, Position>(
  scope: CoordinatorScope, place: ShardPlace, { open, behind, start, limit }: ShardScan<Row, Position>, context: OperationContext,
): AsyncGenerator<readonly Row[]> {
  const call: CallContext = { timeoutMs: scope.options.scanPageTimeoutMs, signal: context.signal, requestId: context.requestId }
  const errors: ReplicaError[] = []
  const failed = new Set<string>()
  let from = start
  let left = limit
  for (;;) {
    const peer = scope.access.readers(place).find(reader => !failed.has(reader.node))
    if (peer === undefined || context.signal.aborted) throw shardFailure(errors)
    try {
      for await (const page of open(peer, { ...(from !== undefined && { start: from }), ...(left !== undefined && { limit: left }) }, call)) {
        const last = page.at(-1)
        if (last === undefined) continue
        failed.clear()
        from = behind(last)
        if (left !== undefined) left -= page.length
        yield page
        if (left !== undefined && left <= 0) return
      }
      return
    } catch (error) {
      const failure = asReplicaError(error)
      if (failure.code === 'timeout') scope.readHealth.silent(peer.node)
      failed.add(peer.node)
      errors.push(failure)
    }
  }
}
