import { mapBounded, ReplicaError, type IndexRead, type RowSequence } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { OperationContext } from '../contracts/coordinator.ts'
import type { ShardPlace } from '../replicas/replica-access.ts'
import { IndexBehindError, sumProgress } from './index-behind-error.ts'
import { immediateRows } from './immediate-rows.ts'
import { ShardAnswer } from './shard-answer.ts'
import type { ReadIndex, ReadRest, ShardRows } from './shard-read.ts'
import type { ViewQuery } from '../contracts/view-query.ts'
import type { ViewScope } from './view-scope.ts'

/** What a query reads of the index of each shard. */
export interface ShardsQuery<Place> extends Omit<ViewQuery, 'partition'> {
  /** Only rows strictly behind this place in the order of the answer. */
  readonly after?: Place
}

/** The answers of all shards that a query reads, in the order of their ranges. */
export interface ViewShards<Row> {
  /** The id of the index (`indexId`). */
  readonly index: string
  readonly answers: readonly ShardRows<Row>[]
  /** All rows of each shard, when all of them were in memory. */
  readonly inMemory?: readonly RowSequence<Row>[]
  /**
   * Returns what aborts when the answers are closed or the client has disconnected. It is made by the first call. An
   * accessor in an object literal would cost more: V8 makes the accessor in old memory, from where it keeps the whole
   * request alive until the next full garbage collection.
   */
  signal(): AbortSignal
  close(): Promise<void>
}

/** Returns the shards that a query reads: all, or that of its partition. */
export function viewPlaces(
  { access }: ViewScope, db: DatabaseRecord, { partition }: Pick<ViewQuery, 'partition'>,
): readonly ShardPlace[] {
  return partition === undefined ? access.places(db) : [access.placeOf(db, `${partition}:`)]
}

/**
 * Opens the index of each shard on one replica and waits for the first page of each.
 *
 * The first rows of a merge can come from any shard, so each shard is asked for `skip` and `limit` together, and the
 * merge leaves rows out. A single shard leaves them out itself.
 *
 * @throws IndexBehindError when indexes were not built in time, with the progress of all shards; ApiError as soon as a
 * shard has no replica left
 */
export async function openShards<Place, Row extends Place>(
  scope: ViewScope, places: readonly ShardPlace[], query: ShardsQuery<Place>, read: ReadIndex<Place, Row>,
  context: OperationContext,
): Promise<ViewShards<Row>> {
  const { definition, update, ranges, descending, after, skip, limit } = query
  const { newest } = scope.unconfirmed
  const rest: ReadRest<Place> = {
    ...(after && { after }),
    ...(places.length === 1
      ? { skip, ...(limit !== null && { limit }) }
      : limit !== null && { limit: limit === 0 ? 0 : skip + limit }),
  }
  const index = scope.indexIds.of(definition)
  const request: IndexRead<Place> = { index, through: update ? 'newest' : 0, ranges, descending, ...rest }
  const immediate = { request, update, newest }
  const inMemory = immediateRows(scope, places, immediate, read)
  if (inMemory.every(rows => rows !== undefined)) {
    const lists = inMemory.map(({ rows }) => rows)
    return { index, answers: inMemory, inMemory: lists, signal: () => context.signal, close: async () => {} }
  }
  return { index, ...await openAll(scope, places, inMemory, { query, newest, rest, read }, context) }
}

/** Made once, because `abort` makes an error with a stack when it is called without a reason, for 15 us. */
const queryClosed = new ReplicaError('cancelled', 'the query was closed')

interface ShardsRead<Place, Row> {
  readonly query: ShardsQuery<Place>
  readonly newest: number
  readonly rest: ReadRest<Place>
  readonly read: ReadIndex<Place, Row>
}

/** @param inMemory the answers that are there already */
async function openAll<Place, Row extends Place>(
  scope: ViewScope, places: readonly ShardPlace[], inMemory: readonly (ShardRows<Row> | undefined)[],
  { query, newest, rest, read }: ShardsRead<Place, Row>, { signal: disconnected, requestId }: OperationContext,
): Promise<Omit<ViewShards<Row>, 'index'>> {
  const { definition, update, ranges, descending, timeoutMs } = query
  const closed = new AbortController()
  const signal = AbortSignal.any([disconnected, closed.signal])
  const request = {
    definition, update, read: { ranges, descending }, open: read.call, newest, timeoutMs, requestId, signal,
    ...(read.countOf && { countOf: read.countOf }), ...(read.failsWith && { failsWith: read.failsWith }),
  }
  const deadline = scope.runtime.clock.monotonic() + timeoutMs
  const answers: ShardRows<Row>[] = []
  const close = async (): Promise<void> => {
    closed.abort(queryClosed)
    await Promise.all(answers.map(answer => answer.close()))
  }
  const behind: IndexBehindError[] = []
  let failure: unknown
  try {
    await mapBounded(places, scope.options.requestCallsMax, async (place, index) => {
      try {
        answers[index] = inMemory[index] ?? await ShardAnswer.open(scope, place, request, rest, deadline)
      } catch (error) {
        if (!(error instanceof IndexBehindError)) {
          // The other shards stop waiting for their builds. Their calls are cancelled, so only the first error counts.
          failure ??= error
          closed.abort(queryClosed)
          throw error
        }
        behind.push(error)
      }
    })
  } catch {
    await close()
    throw failure
  }
  if (behind.length === 0) return { answers, signal: () => signal, close }
  const built = answers.filter(answer => answer !== undefined)
    .map(({ head: { position: { sequence } } }) => ({ done: sequence, total: sequence }))
  await close()
  throw new IndexBehindError(sumProgress([...built, ...behind.map(({ progress }) => progress)]))
}
