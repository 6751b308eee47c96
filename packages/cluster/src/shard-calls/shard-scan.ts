import type { CallContext, IdBound, ReplicaError, ShardReplica } from '@sectional/core'
import type { CoordinatorScope } from './coordinator-scope.ts'
import type { RequestContext } from '../contracts/coordinator.ts'
import type { ShardPlace } from '../replicas/replica-access.ts'
import { asReplicaError, shardFailure } from '../replicas/replica-failures.ts'

/** What to scan, first and last in the direction of the scan. */
export interface ScanSpan {
  readonly start?: IdBound
  readonly end?: IdBound
  readonly descending: boolean
  readonly limit?: number
}

/**
 * Rows of one shard in order from one replica; when it fails or falls silent, the next one goes on behind the
 * last row.
 *
 * @throws ApiError when no replica is left
 */
export async function* scanShard<Row extends { readonly id: string }>(
  scope: CoordinatorScope, place: ShardPlace, span: ScanSpan,
  open: (replica: ShardReplica, span: ScanSpan, call: CallContext) => AsyncIterable<readonly Row[]>, context: RequestContext,
): AsyncGenerator<readonly Row[]> {
  // The deadline of a scan is that of each page.
  const call: CallContext = { timeoutMs: scope.options.scanPageTimeoutMs, signal: context.signal, requestId: context.requestId }
  const errors: ReplicaError[] = []
  const failed = new Set<string>()
  let rest = span
  for (;;) {
    const peer = scope.access.readers(place).find(reader => !failed.has(reader.node))
    if (peer === undefined || context.signal.aborted) throw shardFailure(errors)
    try {
      for await (const page of open(peer.replica, rest, call)) {
        const last = page.at(-1)
        if (last === undefined) continue
        failed.clear()
        rest = { ...rest, start: { id: last.id, inclusive: false }, ...(rest.limit !== undefined && { limit: rest.limit - page.length }) }
        yield page
        if (rest.limit !== undefined && rest.limit <= 0) return
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
