/** Compares views with a naive computation from the documents, after the cluster has come to rest. */
import { parseRange } from '@sectional/core'
import type { IndexReplica, ShardId } from '@sectional/core'
import { IndexReading } from '../views/index-reading.ts'
import { compareJson } from '../views/json-order.ts'
import { naiveReduction, naiveRows, naiveScan } from '../views/naive-view.ts'
import type { NaiveGroup, NaiveRow } from '../views/naive-view.ts'
import type { Json, MappedBody } from '../views/view-functions.ts'
import { drawQuery, queryText } from '../views/view-query.ts'
import type { SwarmQuery } from '../views/view-query.ts'
import type { Dice } from '../world/dice.ts'
import type { World } from '../world/world.ts'
import type { FinalDatabase, Findings } from './final-state.ts'
import { mappedBodies, usedViews } from './used-views.ts'
import type { UsedView } from './used-views.ts'

const wholeView: SwarmQuery = {
  inclusiveEnd: true, descending: false, skip: 0, limit: null, groupLevel: null, update: 'true',
}
const queriesOfView = 3
const queriesOfIndex = 2

/**
 * Queries through any node give the rows that the documents have. The first query of each view reads all its rows.
 */
export async function viewsExact(
  world: World, dice: Dice, databases: ReadonlyMap<string, FinalDatabase>,
): Promise<Findings> {
  const findings: string[] = []
  for (const [database, final] of databases) {
    const documents = mappedBodies(final.documents)
    for (const used of usedViews(final)) {
      const rows = naiveRows(used.view, documents)
      const queries = [wholeView, ...Array.from({ length: queriesOfView }, () => drawQuery(dice, used.view))]
      for (const drawn of queries) {
        const query: SwarmQuery = { ...drawn, update: 'true' }
        const node = dice.pick(world.nodes).number
        const target = `/${database}/${used.design}/_view/${used.name}?${queryText(query, used.view.reduce !== null)}`
        const { status, body } = await world.send(node, 'GET', target)
        const problem = status === 200
          ? answerDifference(used, rows, query, body)
          : `is answered ${status} ${JSON.stringify(body)}`
        if (problem !== null) findings.push(`${target} through node ${node} ${problem}`)
      }
    }
  }
  return findings
}

function answerDifference(
  { view }: UsedView, rows: readonly NaiveRow[], query: SwarmQuery,
  body: { readonly rows: readonly NaiveRow[]; readonly total_rows?: number },
): string | null {
  if (query.groupLevel !== null) return difference(body.rows, naiveReduction(view, rows, query))
  if (body.total_rows !== rows.length) return `has ${body.total_rows} rows in total, not ${rows.length}`
  return difference(body.rows, naiveScan(rows, query))
}

/**
 * The index of every view on every replica has the rows and reductions that the replica's own documents have, after it
 * was brought up to date.
 */
export async function indexesExact(
  world: World, dice: Dice, databases: ReadonlyMap<string, FinalDatabase>,
): Promise<Findings> {
  const reading = new IndexReading(world.queue)
  const findings: string[] = []
  for (const final of databases.values()) {
    const { record: { incarnation }, replicas } = final
    for (const used of usedViews(final)) {
      for (const { node: name, range, documents } of replicas) {
        const indexes = world.nodes.find(node => node.name === name)!.indexes!
        const shard: ShardId = { incarnation, range: parseRange(range) }
        const problem = await indexDifference(reading, dice, indexes(shard), used, mappedBodies(documents), shard)
        if (problem !== null) findings.push(`${used.design}/${used.name} on ${name}, ${range} ${problem}`)
      }
    }
  }
  return findings
}

async function indexDifference(
  reading: IndexReading, dice: Dice, replica: IndexReplica, { view, definition }: UsedView,
  documents: readonly MappedBody[], { incarnation }: ShardId,
): Promise<string | null> {
  const expected = naiveRows(view, documents)
  await reading.build(replica, definition)
  const whole = await reading.scan(replica, definition, wholeView)
  const problems = [
    difference(whole.rows, expected),
    whole.head.rowCount === expected.length ? null : `counts ${whole.head.rowCount} rows, not ${expected.length}`,
  ]
  for (let count = queriesOfIndex; count > 0; count--) {
    const query = drawQuery(dice, view)
    const found = query.groupLevel === null
      ? (await reading.scan(replica, definition, query)).rows
      : await reading.reduce(replica, definition, query, incarnation)
    const wanted = query.groupLevel === null ? naiveScan(expected, query) : naiveReduction(view, expected, query)
    const problem = difference(found, wanted)
    problems.push(problem === null ? null : `${problem}, with ${JSON.stringify(query)}`)
  }
  return problems.find(problem => problem !== null) ?? null
}

/** Returns the first difference of two lists of rows or groups, or null. */
function difference(
  found: readonly (NaiveRow | NaiveGroup)[], expected: readonly (NaiveRow | NaiveGroup)[],
): string | null {
  for (let at = 0; at < Math.max(found.length, expected.length); at++) {
    if (!areEqual(found[at], expected[at])) {
      const [is, should] = [found[at], expected[at]].map(row => row === undefined ? 'nothing' : JSON.stringify(row))
      return `has ${is} in place ${at}, not ${should} (${found.length} rows, not ${expected.length})`
    }
  }
  return null
}

function areEqual(a: NaiveRow | NaiveGroup | undefined, b: NaiveRow | NaiveGroup | undefined): boolean {
  if (a === undefined || b === undefined) return a === b
  return compareJson(a.key, b.key) === 0 && compareJson(ordered(a.value), ordered(b.value)) === 0
    && ('id' in a ? a.id : undefined) === ('id' in b ? b.id : undefined)
}

/** Returns the value with its members in the order of their names, because the order of members has no meaning. */
function ordered(value: Json): Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => a < b ? -1 : 1))
    : value
}
