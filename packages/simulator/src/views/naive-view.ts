/**
 * Views computed in the simplest way: from all documents, without an index. Checkers compare indexes with it.
 */
import { compareUtf8 } from '@sectional/core'
import { compareJson } from './json-order.ts'
import type { Json, MappedBody, SwarmView } from './view-functions.ts'
import type { SwarmQuery } from './view-query.ts'

export interface NaiveRow { readonly id: string; readonly key: Json; readonly value: Json }

export interface NaiveGroup { readonly key: Json; readonly value: Json }

/** Returns all rows of a view in their order. @param documents those that are not deleted, without design documents */
export function naiveRows({ map }: SwarmView, documents: readonly MappedBody[]): NaiveRow[] {
  const rows = documents.flatMap(document => {
    const own: NaiveRow[] = []
    try {
      map(document, (key, value) => own.push({ id: document._id, key, value }))
    } catch {
      return []
    }
    return own
  })
  return rows.sort((a, b) => compareJson(a.key, b.key) || compareUtf8(a.id, b.id) || compareJson(a.value, b.value))
}

type RangeQuery = Pick<SwarmQuery, 'keys' | 'startKey' | 'endKey' | 'inclusiveEnd' | 'descending' | 'groupLevel'>

/** Returns the rows that a query selects, in the order of its answer, for each of its keys or for its only range. */
function ranges(rows: readonly NaiveRow[], query: RangeQuery): readonly (readonly NaiveRow[])[] {
  const { keys, startKey, endKey, inclusiveEnd, descending, groupLevel } = query
  const directed = descending ? rows.toReversed() : rows
  if (keys !== undefined) {
    const ordered = descending && groupLevel === null ? keys.toReversed() : keys
    return ordered.map(key => directed.filter(row => compareJson(row.key, key) === 0))
  }
  const sign = descending ? -1 : 1
  return [directed.filter(({ key }) => {
    const fromStart = startKey === undefined ? 0 : compareJson(key, startKey) * sign
    const fromEnd = endKey === undefined ? -1 : compareJson(key, endKey) * sign
    return fromStart >= 0 && (fromEnd < 0 || (fromEnd === 0 && inclusiveEnd))
  })]
}

/** Returns the rows of the answer to a query that is not reduced. @param rows all rows of the view */
export function naiveScan(rows: readonly NaiveRow[], query: SwarmQuery): readonly NaiveRow[] {
  return page(ranges(rows, query).flat(), query)
}

/** Returns the groups of the answer to a query that is reduced. @param rows all rows of the view */
export function naiveReduction(
  view: SwarmView, rows: readonly NaiveRow[], query: SwarmQuery,
): readonly NaiveGroup[] {
  return page(ranges(rows, query).flatMap(range => groups(view, range, query)), query)
}

function page<Item>(items: readonly Item[], { skip, limit }: SwarmQuery): readonly Item[] {
  return items.slice(skip, limit === null ? undefined : skip + limit)
}

function groups(view: SwarmView, rows: readonly NaiveRow[], { groupLevel, descending }: SwarmQuery): NaiveGroup[] {
  const found: { readonly key: Json; readonly rows: NaiveRow[] }[] = []
  for (const row of rows) {
    const key = groupKey(row.key, groupLevel)
    const last = found.at(-1)
    if (last !== undefined && compareJson(last.key, key) === 0) last.rows.push(row)
    else found.push({ key, rows: [row] })
  }
  return found.map(group => ({
    key: group.key, value: reduced(view, descending ? group.rows.toReversed() : group.rows),
  }))
}

function groupKey(key: Json, level: SwarmQuery['groupLevel']): Json {
  if (level === 'exact') return key
  if (level === 0 || level === null) return null
  return Array.isArray(key) ? key.slice(0, level) : key
}

function reduced({ reduce }: SwarmView, rows: readonly NaiveRow[]): Json {
  const values = rows.map(({ value }) => value)
  if (reduce === '_count') return rows.length
  if (reduce === null) throw new Error('the view has no reduce function')
  if (typeof reduce === 'function') return reduce(rows.map(({ id, key }) => [key, id]), values, false)
  const numbers = values as readonly number[]
  const sum = numbers.reduce((total, number) => total + number, 0)
  if (reduce === '_sum') return sum
  return {
    sum, count: numbers.length, min: Math.min(...numbers), max: Math.max(...numbers),
    sumsqr: numbers.reduce((total, number) => total + number * number, 0),
  }
}
