import { everything, scanOrder, type FindProgress, type FoundDocument } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { FindAnswer, FindQuery } from '../contracts/find-query.ts'
import type { OperationContext } from '../contracts/coordinator.ts'
import { mergeRows } from '../shard-calls/row-merge.ts'
import type { FindScope } from './find-scope.ts'
import { findInShards, type ShardFindRow } from './find-shards.ts'
import { FindTally } from './find-tally.ts'
import { sortedMatches } from './match-sort.ts'
import { findLocally } from './local-find.ts'
import { MatchWindow } from './match-window.ts'
import { quorumMatches } from './quorum-matches.ts'
import { findSingle, onlyId } from './single-document.ts'

/**
 * Returns the documents that match a selector, in the order of the source, merged from one replica of each shard. It
 * holds at most one page of each shard and reads further pages as the matches are read.
 *
 * Each shard is asked for `skip` and `limit` together, because the first matches can come from any shard. It is asked
 * for all matches if they are sorted here, and for all candidates if their documents are read from several replicas.
 *
 * @throws IndexBehindError when an index was not built within `timeoutMs`; ApiError when a shard has no replica left
 */
export async function find(
  scope: FindScope, db: DatabaseRecord, query: FindQuery, context: OperationContext,
): Promise<FindAnswer> {
  const { after, skip, limit, r = 1, sort, ...asked } = query
  const isQuorum = r > 1
  const tally = new FindTally()
  const isEmpty = limit === 0 || (query.source.kind === 'index' && query.source.ranges.length === 0)
  if (isEmpty) return answerOf(new MatchWindow(onePage([]), query), tally, async () => {})
  const needed = limit === null || isQuorum || sort !== undefined ? null : skip + limit
  const local = needed === null ? undefined : await findLocally(scope, db, query, needed, tally, context)
  if (local !== undefined) return answerOf(new MatchWindow(onePage(local), query), tally, async () => {})
  const id = onlyId(query.source)
  if (id !== undefined) {
    const found = onePage(await findSingle(scope, db, id, query, tally, context))
    return answerOf(new MatchWindow(sorted(found, query, scope), query), tally, async () => {})
  }
  const { sources, close } = await findInShards(scope, db, {
    ...asked, ...(isQuorum && { selector: everything, documents: 'none' }),
    ...(sort !== undefined ? { descending: false } : after && { after }),
    ...(needed !== null && { limit: needed }),
  }, context)
  const onProgress = (progress: FindProgress): void => isQuorum ? tally.addKeys(progress) : tally.add(progress)
  const compare = scanOrder(sort === undefined && query.descending)
  const merged = scope.pages.hold(pages => mergeRows(sources.map(rows => foundOf(rows, onProgress)), {
    compare, bytesOf, skip: 0, limit: needed, ...pages,
  }))
  const matches = isQuorum ? quorumMatches(scope, db, merged, query, tally, context) : merged
  return answerOf(new MatchWindow(sorted(matches, query, scope), query), tally, close)
}

function sorted(
  matches: AsyncIterable<readonly FoundDocument[]>, { sort, ...query }: FindQuery, { runtime, sortMemory }: FindScope,
): AsyncIterable<readonly FoundDocument[]> {
  return sort === undefined ? matches : sortedMatches(matches, { ...query, sort }, sortMemory, runtime.turns)
}

function answerOf(window: MatchWindow, tally: FindTally, close: () => Promise<void>): FindAnswer {
  return {
    matches: window.pages(), statistics: () => tally.statistics(), lastPosition: () => window.lastPosition, close,
  }
}

async function* onePage(matches: readonly FoundDocument[]): AsyncGenerator<readonly FoundDocument[]> {
  if (matches.length > 0) yield matches
}

/** Returns the matches of one shard. */
async function* foundOf(
  source: AsyncIterable<readonly ShardFindRow[]>, onProgress: (progress: FindProgress) => void,
): AsyncGenerator<readonly FoundDocument[]> {
  for await (const page of source) {
    const found: FoundDocument[] = []
    for (const row of page) {
      if (row.kind === 'found') found.push(row)
      else onProgress(row)
    }
    if (found.length > 0) yield found
  }
}

function bytesOf({ key, value, body }: FoundDocument): number {
  return key.length + value.length + (body?.length ?? 0)
}
