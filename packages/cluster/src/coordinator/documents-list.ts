import { compareUtf8, mapBounded } from '@sectional/core'
import type { IdBound } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import { readCall } from '../shard-calls/coordinator-scope.ts'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import type { DocumentList, ListDocumentsOptions, ListedDocument, OperationContext } from '../contracts/coordinator.ts'
import type { ShardPlace } from '../replicas/replica-access.ts'
import { askOne } from '../shard-calls/reply-collection.ts'
import { rowsById } from '../shard-calls/rows-by-id.ts'

/** The documents to list in each shard. First and last follow the direction of the list. */
interface ListSpan {
  readonly places: readonly ShardPlace[]
  readonly start?: IdBound
  readonly end?: IdBound
  /** Bounds of the partition in the direction of the list. */
  readonly partition?: { readonly first: IdBound; readonly last: IdBound }
}

/**
 * Lists documents in the byte order of their ids, merged from one replica of each shard. The rows are scanned when
 * `rows` is read; an error of the first page means that the whole list fails.
 */
export async function listDocuments(
  scope: CoordinatorScope, db: DatabaseRecord, options: ListDocumentsOptions, context: OperationContext,
): Promise<DocumentList> {
  const span = listSpan(scope, db, options)
  const count = async (before: IdBound | undefined): Promise<number> => {
    const request = { descending: options.descending, ...(before && { before }) }
    const counts = await mapBounded(span.places, scope.options.requestCallsMax, place =>
      askOne(scope, place, peer => peer.replica.countDocuments(request, readCall(scope, context))))
    return counts.reduce((sum, each) => sum + each, 0)
  }
  const { partition } = span
  const [all, aboveStart, abovePartition] = await Promise.all([
    count(partition && { id: partition.last.id, inclusive: !partition.last.inclusive }),
    span.start === undefined ? 0 : count(span.start),
    partition === undefined ? 0 : count(partition.first),
  ])
  const total = all - abovePartition
  return {
    total, offset: Math.min(total, aboveStart - abovePartition + options.skip),
    rows: listRows(scope, span, options, context),
  }
}

function listRows(
  scope: CoordinatorScope, span: ListSpan, options: ListDocumentsOptions, context: OperationContext,
): AsyncIterable<readonly ListedDocument[]> {
  const { descending, body, leaves } = options
  const request = { descending, body, leaves, ...(span.end && { end: span.end }) }
  return rowsById(scope, span.places, { ...options, start: span.start },
    ({ replica }, rest, call) => replica.scanDocuments({ ...request, ...rest }, call), context)
}

function listSpan(
  scope: CoordinatorScope, db: DatabaseRecord, { start, end, descending, partition }: ListDocumentsOptions,
): ListSpan {
  if (partition === undefined) return { places: scope.access.places(db), start, end }
  // ';' follows ':' in byte order.
  const lowest: IdBound = { id: `${partition}:`, inclusive: true }
  const beyond: IdBound = { id: `${partition};`, inclusive: false }
  const [first, last] = descending ? [beyond, lowest] : [lowest, beyond]
  const sign = descending ? -1 : 1
  return {
    places: [scope.access.placeOf(db, `${partition}:`)],
    start: start !== undefined && compareUtf8(start.id, first.id) * sign > 0 ? start : first,
    end: end !== undefined && compareUtf8(end.id, last.id) * sign < 0 ? end : last,
    partition: { first, last },
  }
}
