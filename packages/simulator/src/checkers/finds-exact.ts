/** Compares queries by selector with a filter of all documents, after the cluster has come to rest. */
import { parseQueryIndex } from '@sectional/core'
import { drawSelector, intersectionOf } from '../views/swarm-selectors.ts'
import type { Dice } from '../world/dice.ts'
import type { World } from '../world/world.ts'
import type { FinalDatabase, Findings } from './final-state.ts'
import { mappedBodies, usedQueryIndexes } from './used-views.ts'
import { sendUntil } from './views-exact.ts'

const drawnSelectors = 3
/** Documents of one page of a query with bookmarks. */
const pageMin = 3
const pageMax = 20
/** Probability that a query asks two replicas of each range for each document. */
const quorumChance = 0.3
/** More documents than a database of the swarm has. */
const limit = 10_000

/**
 * Queries by selector through any node find the documents that match, with the index that is chosen and with each index
 * that can be named.
 *
 * @param attempts how often a query that fails is sent
 */
export async function findsExact(
  world: World, dice: Dice, databases: ReadonlyMap<string, FinalDatabase>, attempts: number,
): Promise<Findings> {
  const findings: string[] = []
  for (const [database, final] of databases) {
    const documents = mappedBodies(final.documents)
    // A query that names a partial index may find only the documents of this index, as in CouchDB.
    const whole = usedQueryIndexes(final)
      .filter(({ definition }) => parseQueryIndex(definition).partialFilter === undefined)
    const named = whole.map(({ design, name }) => ({ use_index: [design, name] }))
    const fields = whole.map(({ definition }) => parseQueryIndex(definition).fields.join())
    // This order is that of one index, whose rows are then looked up in the other one.
    const sorted = fields.includes('v') && fields.includes('pad') ? [{ sort: ['pad'] }] : []
    const values = documents.flatMap(({ v }) => v ?? [])
    const shared = intersectionOf(values.length === 0 ? '' : dice.pick(values))
    const selectors = [shared, ...Array.from({ length: drawnSelectors }, () => drawSelector(dice))]
    for (const [at, { selector, matches }] of selectors.entries()) {
      // One node, because the numbers of rows are those of the replicas that it reads.
      const node = dice.pick(world.nodes).number
      const expected = documents.filter(matches).map(({ _id }) => _id).sort()
      // The queries that name an index build it, so that the last one can choose by the numbers of rows.
      for (const choice of [...named, {}, ...at === 0 ? sorted : []]) {
        const query = { selector, limit, fields: ['_id'], ...choice }
        const { status, body } = await sendUntil(attempts, () => world.send(node, 'POST', `/${database}/_find`, query))
        const found = status === 200 ? idsOf(body) : undefined
        if (JSON.stringify(found) === JSON.stringify(expected)) continue
        findings.push(`${database}/_find ${JSON.stringify(query)} through node ${node} is answered ${status} `
          + `${JSON.stringify(found ?? body)}, not ${JSON.stringify(expected)}`)
      }
      if (at < selectors.length - 1) continue
      const query = { selector, fields: ['_id'], ...(dice.chance(quorumChance) && { r: 2 }) }
      const paged = await findInPages(world, dice, attempts, node, database, query)
      if (paged === undefined || JSON.stringify(paged.toSorted()) === JSON.stringify(expected)) continue
      findings.push(`the pages of ${database}/_find ${JSON.stringify(query)} through node ${node} have `
        + `${JSON.stringify(paged)}, not ${JSON.stringify(expected)}`)
    }
  }
  return findings
}

/** Returns the documents of all pages of a query, which bookmarks connect; undefined when one of them fails. */
async function findInPages(
  world: World, dice: Dice, attempts: number, node: number, database: string, query: object,
): Promise<readonly string[] | undefined> {
  const ids: string[] = []
  const page = dice.integer(pageMin, pageMax)
  for (let bookmark: string | undefined; ;) {
    const request = { ...query, limit: page, ...(bookmark !== undefined && { bookmark }) }
    const { status, body } = await sendUntil(attempts, () => world.send(node, 'POST', `/${database}/_find`, request))
    if (status !== 200) return undefined
    ids.push(...idsOf(body))
    if (body.docs.length < page || ids.length > limit) return ids
    bookmark = body.bookmark
  }
}

function idsOf({ docs }: { readonly docs: readonly { readonly _id: string }[] }): readonly string[] {
  return docs.map(({ _id }) => _id).sort()
}
