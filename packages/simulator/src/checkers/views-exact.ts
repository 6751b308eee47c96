/** Compares views with a naive computation from the documents, after the cluster has come to rest. */
import { parseRange } from '@sectional/core'
import type { IndexReplica } from '@sectional/core'
import { IndexReading } from '../views/index-reading.ts'
import type { ReadRows } from '../views/index-reading.ts'
import { compareJson } from '../views/json-order.ts'
import { naiveReduction, naiveRows, naiveScan } from '../views/naive-view.ts'
import type { NaiveGroup, NaiveRow } from '../views/naive-view.ts'
import type { Json } from '../views/view-functions.ts'
import { drawQuery, drawWindow, queryText, wholeView } from '../views/view-query.ts'
import type { SwarmQuery } from '../views/view-query.ts'
import type { Dice } from '../world/dice.ts'
import type { Answer } from '../world/answer.ts'
import type { World } from '../world/world.ts'
import type { FinalDatabase, Findings } from './final-state.ts'
import { mappedBodies, usedQueryIndexes, usedViews } from './used-views.ts'
import type { UsedView } from './used-views.ts'

const queriesOfView = 3
const queriesOfIndex = 2

/**
 * Queries through any node give the rows that the documents have. The first query of each view reads all its rows.
 *
 * @param attempts how often a query that fails is sent
 */
export async function viewsExact(
  world: World, dice: Dice, databases: ReadonlyMap<string, FinalDatabase>, attempts: number,
): Promise<Findings> {
  const findings: string[] = []
  for (const [database, final] of databases) {
    const documents = mappedBodies(final.documents)
    for (const used of usedViews(final)) {
      const rows = naiveRows(used.view, documents)
      const queries = [wholeView, ...Array.from({ length: queriesOfView }, () => drawQuery(dice, used.view))]
      const asked = queries.map((query): [SwarmQuery, number] => [query, dice.pick(world.nodes).number])
      // A node keeps answers to reduced queries. Another part of the same answer must not be taken from them.
      const again = asked.filter(([{ groupLevel }]) => groupLevel !== null).slice(0, 1)
        .map(([query, node]): [SwarmQuery, number] => [{ ...query, ...drawWindow(dice) }, node])
      for (const [drawn, node] of [...asked, ...again]) {
        const query: SwarmQuery = { ...drawn, update: 'true' }
        const target = `/${database}/${used.design}/_view/${used.name}?${queryText(query, used.view.reduce !== null)}`
        const { status, body } = await sendUntil(attempts, () => world.send(node, 'GET', target))
        const problem = status === 200
          ? answerDifference(used, rows, query, body)
          : `is answered ${status} ${JSON.stringify(body)}`
        if (problem !== null) findings.push(`${target} through node ${node} ${problem}`)
      }
    }
  }
  return findings
}

/** Sends a request again until it is answered 200, at most so often. */
export async function sendUntil(attempts: number, send: () => Promise<Answer>): Promise<Answer> {
  const answer = await send()
  return answer.status === 200 || attempts <= 1 ? answer : sendUntil(attempts - 1, send)
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
 * The index of every view, and every index of Mango, has on every replica the rows and reductions that the replica's
 * own documents have, after it was brought up to date, and no call waits for it any more. The indexes of all replicas
 * of a range have the same version.
 */
export async function indexesExact(
  world: World, dice: Dice, databases: ReadonlyMap<string, FinalDatabase>, attempts: number,
): Promise<Findings> {
  const reading = new IndexReading(world.queue)
  const findings: string[] = []
  for (const final of databases.values()) {
    const { record: { incarnation }, replicas } = final
    for (const used of [...usedViews(final), ...usedQueryIndexes(final)]) {
      const versions = new Map<string, string>()
      for (const { node: name, range, documents } of replicas) {
        const { indexes } = world.nodes.find(node => node.name === name)!
        const replica = indexes!({ incarnation, range: parseRange(range) })
        const expected = naiveRows(used.view, mappedBodies(documents))
        const problem = await until(attempts, async () => {
          await reading.build(replica, used.definition)
          const found = await reading.scan(replica, used.definition, wholeView)
          const { version } = found.head
          const other = versions.get(range) ?? version
          versions.set(range, other)
          return wholeDifference(found, expected)
            ?? await partsDifference(reading, dice, replica, used, expected, incarnation)
            ?? (version === other ? null : `has version ${version}, and another replica has ${other}`)
            ?? await reading.waitingProblem(replica, used.definition)
        })
        if (problem !== null) findings.push(`${used.design}/${used.name} on ${name}, ${range} ${problem}`)
      }
    }
  }
  return findings
}

async function until<Result>(attempts: number, attempt: () => Promise<Result>): Promise<Result> {
  try {
    return await attempt()
  } catch (error) {
    if (attempts <= 1) throw error
    return until(attempts - 1, attempt)
  }
}

/** Compares all rows of an index, and their number, with those that it should have. */
export function wholeDifference({ head, rows }: ReadRows, expected: readonly NaiveRow[]): string | null {
  return difference(rows, expected)
    ?? (head.rowCount === expected.length ? null : `counts ${head.rowCount} rows, not ${expected.length}`)
}

/** Compares the answers to some queries with random parameters. */
async function partsDifference(
  reading: IndexReading, dice: Dice, replica: IndexReplica, { view, definition }: UsedView,
  expected: readonly NaiveRow[], incarnation: string,
): Promise<string | null> {
  for (let count = queriesOfIndex; count > 0; count--) {
    const query = drawQuery(dice, view)
    const isReduced = query.groupLevel !== null
    const found = isReduced
      ? await reading.reduce(replica, definition, query, incarnation)
      : (await reading.scan(replica, definition, query)).rows
    const problem = difference(found, isReduced ? naiveReduction(view, expected, query) : naiveScan(expected, query))
    if (problem !== null) return `${problem}, with ${JSON.stringify(query)}`
  }
  return null
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
