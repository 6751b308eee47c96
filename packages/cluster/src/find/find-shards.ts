import { mapBounded, selectorJson } from '@sectional/core'
import type { FindProgress, FindRequest, FindRow, FoundDocument, ScannedPlace } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { FindQuery, FindQuerySource } from '../contracts/find-query.ts'
import type { OperationContext } from '../contracts/coordinator.ts'
import { scanShard } from '../shard-calls/shard-scan.ts'
import { openShards, viewPlaces } from '../views/view-shards.ts'
import type { FindScope } from './find-scope.ts'

/** The error for a selector or an aggregation that takes too long, which is so on every replica. */
const tooSlow = 'exhausted'

export type ShardFindRow = FoundDocument | FindProgress

/** What is asked of each shard. */
export interface ShardFind extends Pick<FindQuery, 'selector' | 'source' | 'update' | 'timeoutMs' | 'partition'>,
  Pick<FindRequest, 'descending' | 'after' | 'limit' | 'documents' | 'countOnly' | 'aggregate' | 'isExact'> {}

/** The answers of all shards that a query reads. */
export interface FoundInShards {
  /** In the order of the shards' ranges. Each can be read once, in pages with at least one row. */
  readonly sources: readonly AsyncIterable<readonly ShardFindRow[]>[]
  /** Ends all calls. */
  close(): Promise<void>
}

/**
 * Begins to look for matches in each shard on one replica. When that replica fails, another one continues behind the
 * last place that was reported.
 *
 * @throws IndexBehindError when an index was not built within `timeoutMs`; ApiError when a shard has no replica left.
 * Without an index, both are thrown when the sources are read
 */
export async function findInShards(
  scope: FindScope, db: DatabaseRecord, find: ShardFind, context: OperationContext,
): Promise<FoundInShards> {
  const { source } = find
  return source.kind === 'index'
    ? findInIndexes(scope, db, find, source, context)
    : findInDocuments(scope, db, find, source, context)
}

/**
 * Reads the answers of all shards to their ends, for a query whose matches are not listed.
 *
 * @throws IndexBehindError when an index was not built within `timeoutMs`; ApiError when a shard has no replica left;
 * what `onProgress` throws
 */
export async function examineShards(
  scope: FindScope, db: DatabaseRecord, find: ShardFind, onProgress: (progress: FindProgress) => void,
  context: OperationContext,
): Promise<void> {
  const { sources, close } = await findInShards(scope, db, find, context)
  try {
    await mapBounded(sources, scope.options.requestCallsMax, async pages => {
      for await (const page of pages) {
        for (const row of page) if (row.kind === 'progress') onProgress(row)
        await scope.runtime.turns.pause()
      }
    })
  } finally {
    await close()
  }
}

async function findInIndexes(
  scope: FindScope, db: DatabaseRecord, find: ShardFind,
  { definition, ranges, within }: FindQuerySource & { kind: 'index' }, context: OperationContext,
): Promise<FoundInShards> {
  const { descending, after, limit = null, update, timeoutMs } = find
  const tested = testOf(find)
  const filter = within && { within: { index: scope.indexIds.of(within.definition), key: within.key } }
  const query = { definition, ranges, descending, skip: 0, limit, update, timeoutMs, ...(after && { after }) }
  const { answers, close } = await openShards<ScannedPlace, ShardFindRow>(scope, viewPlaces(scope, db, find), query, {
    call: (indexes, { index, through, ranges: read, after: last, limit: left }, call) => indexes.find({
      ...tested, source: { kind: 'index', index, through, ranges: read, ...filter },
      ...(last && { after: placeOf(last) }), ...(left !== undefined && { limit: left }),
    }, call),
    immediate: indexes => indexes.map(() => undefined),
    countOf: matchesOf,
    failsWith: tooSlow,
  }, context)
  return { sources: answers.map(answer => answer.pages()), close }
}

async function findInDocuments(
  scope: FindScope, db: DatabaseRecord, find: ShardFind, source: FindQuerySource & { kind: 'documents' },
  { signal: disconnected, requestId }: OperationContext,
): Promise<FoundInShards> {
  const { after, limit, update, timeoutMs } = find
  const closed = new AbortController()
  const context = { requestId, signal: AbortSignal.any([disconnected, closed.signal]) }
  const request = { ...testOf(find), source }
  const sources = viewPlaces(scope, db, find).map(place => scanShard<ShardFindRow, ScannedPlace>(scope, place, {
    open: (peer, { start, limit: left }, call) => scope.indexes.indexes(peer.node, place.id).find({
      ...request, ...(start && { after: start }), ...(left !== undefined && { limit: left }),
    }, call) as AsyncIterable<readonly ShardFindRow[]>,
    behind: placeOf,
    countOf: matchesOf,
    failsWith: tooSlow,
    ...(update === true && { confirmedWaitMs: timeoutMs }),
    ...(after && { start: after }), ...(limit !== undefined && { limit }),
  }, context))
  return { sources, close: async () => closed.abort() }
}

/** Returns the members of the request that are the same for each call. */
function testOf(
  { selector, descending, documents, countOnly, aggregate, isExact }: ShardFind,
): Omit<FindRequest, 'source' | 'after' | 'limit'> {
  return {
    selector: JSON.stringify(selectorJson(selector)), descending, documents,
    ...(countOnly === true && { countOnly }),
    ...(aggregate !== undefined && { aggregate, ...(isExact && { isExact }) }),
  }
}

function placeOf({ range, key, id, number }: ScannedPlace): ScannedPlace {
  return { range, key, id, number }
}

/** Returns by how many matches a page reduces the limit. */
function matchesOf(rows: readonly FindRow[]): number {
  return rows.reduce((count, { kind }) => kind === 'found' ? count + 1 : count, 0)
}
