/** What the answer to any query of a view must satisfy, whichever writes it contains. */
import { compareUtf8 } from '@sectional/core'
import { compareJson } from './json-order.ts'
import { naiveRows } from './naive-view.ts'
import type { NaiveGroup, NaiveRow } from './naive-view.ts'
import { swarmViews } from './view-functions.ts'
import type { Json, MappedBody, SwarmView } from './view-functions.ts'
import type { SwarmQuery } from './view-query.ts'

/**
 * Returns what is wrong with an answer, or null: rows or groups in wrong order, twice or more than the limit, or
 * rows of one document that no revision of it has together. The view may have been defined anew shortly before.
 *
 * @param rows the rows, or groups, which have no `id`
 */
export function answerProblem(query: SwarmQuery, rows: readonly NaiveRow[]): string | null {
  const { limit, groupLevel, keys } = query
  if (limit !== null && rows.length > limit) return `${rows.length} rows are listed with the limit ${limit}`
  if (keys === undefined) {
    const at = rows.findIndex((row, index) => index > 0 && !isInOrder(rows[index - 1]!, row, query))
    if (at > 0) return `${JSON.stringify(rows[at])} follows ${JSON.stringify(rows[at - 1])}`
  }
  if (groupLevel !== null || !isWhole(query) || rows[0]?.id === undefined) return null
  const problems = swarmViews.map(view => mixedRevisions(view, rows))
  return problems.includes(null) ? null : problems.join(', or ')
}

function isInOrder(before: NaiveRow | NaiveGroup, after: NaiveRow | NaiveGroup, query: SwarmQuery): boolean {
  const order = compareJson(before.key, after.key)
    || ('id' in before && 'id' in after
      ? compareUtf8(before.id, after.id) || compareJson(before.value, after.value)
      : 0)
  return query.descending ? order > 0 : order < 0
}

function isWhole({ keys, startKey, endKey, skip, limit }: SwarmQuery): boolean {
  return keys === undefined && startKey === undefined && endKey === undefined && skip === 0 && limit === null
}

/** Finds a document whose rows are not those of one revision, for views whose rows name the revision's value. */
function mixedRevisions(view: SwarmView, rows: readonly NaiveRow[]): string | null {
  for (const [id, own] of Map.groupBy(rows, row => row.id)) {
    const named = own.flatMap(({ key, value }) => [...textsIn(key), ...textsIn(value)]).find(text => text.includes('.'))
    if (named === undefined) continue
    const document: MappedBody = { _id: id, _rev: '', v: named }
    const expected = new Set(naiveRows(view, [document]).map(row => JSON.stringify(row)))
    const found = own.map(row => JSON.stringify({ id, key: row.key, value: row.value }))
    if (found.length !== expected.size || !found.every(row => expected.has(row))) {
      return `the rows of ${id} are ${found.join(' ')}, but the revision ${named} has ${[...expected].join(' ')}`
    }
  }
  return null
}

function textsIn(json: Json): string[] {
  if (typeof json === 'string') return [json]
  return typeof json === 'object' && json !== null ? Object.values(json).flatMap(textsIn) : []
}
