import { builtInReduce, decodeViewGroup } from '@sectional/core'
import type { IndexEstimate, IndexHead, ReducedGroup, ReduceIndexRequest } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { IndexRanges } from '../contracts/find-query.ts'
import type { OperationContext } from '../contracts/coordinator.ts'
import type { ShardPlace } from '../replicas/replica-access.ts'
import { viewPlaces } from '../views/view-shards.ts'
import type { FindScope } from './find-scope.ts'

/** Longest time to wait for an estimate, in milliseconds. A query is better off with any of its indexes than late. */
const estimateTimeoutMs = 250

/**
 * Estimates how many rows each candidate of a query has, and how many of them the query would read. It counts the rows
 * in one shard: documents are spread over the shards by a hash, so each shard is a sample of the database. It reads the
 * index as it is, and builds nothing.
 *
 * @returns one estimate for each candidate; undefined when the sampled replica does not have the index, or does not
 * answer in time
 */
export async function estimateRows(
  scope: FindScope, db: DatabaseRecord, candidates: readonly IndexRanges[],
  { partition }: { readonly partition?: string }, context: OperationContext,
): Promise<readonly (IndexEstimate | undefined)[]> {
  const places = viewPlaces(scope, db, { ...(partition !== undefined && { partition }) })
  const sample = places.find(place => scope.access.readsLocally(scope.access.now(place))) ?? places[0]!
  return Promise.all(candidates.map(async candidate => {
    const rows = await sampledRows(scope, sample, candidate, context)
    return rows && { rows: rows.rows * places.length, all: rows.all * places.length }
  }))
}

async function sampledRows(
  scope: FindScope, place: ShardPlace, { definition, ranges }: IndexRanges, { signal, requestId }: OperationContext,
): Promise<IndexEstimate | undefined> {
  const request: ReduceIndexRequest = {
    index: scope.indexIds.of(definition), through: 0, ranges, descending: false, groupLevel: 0,
  }
  const peer = scope.access.readers(place)[0]
  if (peer === undefined) return undefined
  const known = peer.local ? scope.indexes.immediate?.(place.id)?.reduceIndex(request) : undefined
  if (known !== undefined) return rowsIn(known.head, [...known.rows])
  try {
    const call = { timeoutMs: estimateTimeoutMs, signal, requestId }
    const [head, ...groups] = await allRows(scope.indexes.indexes(peer.node, place.id).reduceIndex(request, call))
    return rowsIn(head as IndexHead, groups as ReducedGroup[])
  } catch {
    // Without an estimate, the planner chooses by its other rules.
    return undefined
  }
}

async function allRows<Row>(pages: AsyncIterable<readonly Row[]>): Promise<readonly Row[]> {
  const rows: Row[] = []
  for await (const page of pages) rows.push(...page)
  return rows
}

/** Returns undefined for an index whose first build has not ended. */
function rowsIn({ position, rowCount }: IndexHead, groups: readonly ReducedGroup[]): IndexEstimate | undefined {
  if (position.sequence === 0) return undefined
  const reduction = builtInReduce('_count')!.start()
  for (const { value } of groups) reduction.addState(decodeViewGroup(value).state)
  return { rows: groups.length === 0 ? 0 : Number(reduction.result()), all: rowCount }
}
