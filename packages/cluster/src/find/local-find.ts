/**
 * Short queries of shards that all have a replica on this node. The rows of the index are merged first, and only the
 * documents of the rows that come first are read. If each of `q` shards found the matches that the answer may need, all
 * of them together would read `q` times as many documents.
 */
import { scanOrder, scanTogether } from '@sectional/core'
import type {
  FoundDocument, IndexRow, ReplicaCheckpoint, RowRange, RowSequence, ScannedPlace,
} from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { FindQuery, FindQuerySource } from '../contracts/find-query.ts'
import type { OperationContext } from '../contracts/coordinator.ts'
import type { ShardPlace } from '../replicas/replica-access.ts'
import { ListMerge } from '../shard-calls/row-merge.ts'
import { openShards, viewPlaces } from '../views/view-shards.ts'
import type { FindScope } from './find-scope.ts'
import type { FindTally } from './find-tally.ts'
import { LocalReads } from './local-reads.ts'

/** The most matches, `skip` and `limit` together, that are looked for in this way. */
const matchesMax = 200
/** The most rows that are examined: a number for each query, and one for each match that is needed. */
const rowsMax = 64
const rowsPerMatchMax = 2
/** Number of rows that are read of a shard beside those that the answer needs. */
const spareRows = 32

type IndexSource = FindQuerySource & { readonly kind: 'index' }

/**
 * Returns the first matches of an index, at most `needed`. Undefined when they cannot be found in this way; then
 * nothing was added to the tally.
 *
 * @throws IndexBehindError when the index was not built within `timeoutMs`; ApiError when a shard has no replica left
 */
export async function findLocally(
  scope: FindScope, db: DatabaseRecord, query: FindQuery, needed: number, tally: FindTally, context: OperationContext,
): Promise<readonly FoundDocument[] | undefined> {
  const { source, descending } = query
  // A query by two indexes reads many rows for few matches.
  const isLong = needed > matchesMax || (source.kind === 'index' && source.within !== undefined)
  if (source.kind !== 'index' || isLong || !canContinue(source)) return undefined
  const places = viewPlaces(scope, db, query)
  if (!places.every(place => scope.access.readsLocally(scope.access.now(place)))) return undefined
  const perShard = needed + spareRows
  const candidates = await candidateRows(scope, places, query, source, perShard, context)
  if (candidates === undefined) return undefined
  const { lists, positions } = candidates
  const isPart = lists.filter(({ length }) => length >= perShard)
  const documents = new LocalReads(scope, db, query, positions, context)
  const compare = scanOrder(descending)
  const merge = new ListMerge(lists, compare)
  while (documents.found.length < needed) {
    const rows = merge.take(needed - documents.found.length)
    const last = rows.at(-1)
    // The order of the rows is not known behind the last one of a list that is not complete.
    if (isPart.some(list => last === undefined || compare(list.at(list.length - 1)!, last) < 0)) return undefined
    if (last === undefined) break
    const isTooLong = documents.keysExamined + rows.length > rowsMax + rowsPerMatchMax * needed
    if (isTooLong || !await documents.examine(rows)) return undefined
  }
  tally.add(documents)
  return documents.found
}

/** Whether `behind` can be used. */
function canContinue({ ranges }: IndexSource): boolean {
  return ranges.every(({ lower, upper }) => lower?.id === undefined && upper?.id === undefined)
}

/** The first rows of each shard, and the positions of the indexes that have them. */
interface Candidates {
  readonly lists: readonly RowSequence<IndexRow>[]
  readonly positions: ReadonlyMap<ShardPlace, ReplicaCheckpoint>
}

/**
 * Returns the first rows of each shard. Undefined when another node answers for a shard, because the replica of this
 * node lacks writes that it needs.
 */
async function candidateRows(
  scope: FindScope, places: readonly ShardPlace[], { descending, after, update, timeoutMs }: FindQuery,
  { definition, ranges }: IndexSource, limit: number, context: OperationContext,
): Promise<Candidates | undefined> {
  const query = {
    definition, ranges: ranges.map((range, at) => after === undefined ? range : behind(range, at, after, descending)),
    descending, skip: 0, limit, update, timeoutMs,
  }
  const { inMemory, answers, close } = await openShards<ScannedPlace, IndexRow>(scope, places, query, {
    call: (indexes, read, call) => indexes.scanIndex(read, call),
    immediate: scanTogether,
  }, context)
  try {
    if (answers.some(({ node }) => node !== scope.access.node)) return undefined
    const lists = inMemory ?? await Promise.all(answers.map(answer => allRows(answer.pages())))
    return { lists, positions: new Map(answers.map(({ place, head }) => [place, head.position])) }
  } finally {
    await close()
  }
}

/** A range without rows. */
const noRow: RowRange = { upper: { key: '', inclusive: false } }

async function allRows(pages: AsyncIterable<readonly IndexRow[]>): Promise<readonly IndexRow[]> {
  const rows: IndexRow[] = []
  for await (const page of pages) rows.push(...page)
  return rows
}

/**
 * Returns the part of a range behind a place. Reads from memory begin at the bounds of ranges only.
 *
 * @param at the index of the range
 */
function behind(
  range: RowRange, at: number, { range: placeRange, key, id }: ScannedPlace, descending: boolean,
): RowRange {
  if (at !== placeRange) return at < placeRange ? noRow : range
  const bound = descending ? range.upper : range.lower
  const isBefore = bound !== undefined
    && (key === bound.key ? !bound.inclusive : descending ? key > bound.key : key < bound.key)
  if (isBefore) return range
  const begin = { key, id, inclusive: false }
  return descending ? { ...range, upper: begin } : { ...range, lower: begin }
}
