/** Defines Mango's indexes in a design document, changes them, and finds documents by selectors. */
import { findAnswers } from '../checkers/find-answers.ts'
import { viewsFresh } from '../checkers/views-fresh.ts'
import { indexSourceOf, pairedIndexes, swarmIndexes } from '../views/swarm-indexes.ts'
import { drawSelector, type SwarmSelector } from '../views/swarm-selectors.ts'
import type { MappedBody } from '../views/view-functions.ts'
import { outcomeOf, readWritten } from '../workload/client-session.ts'
import type { ClientSession, Reading } from '../workload/client-session.ts'
import type { Answer } from '../world/answer.ts'
import type { SwarmAction } from './action.ts'
import { write } from './document-actions.ts'

const designs = ['_design/index', '_design/other']
const indexNames = ['a', 'b', 'c']
const limitMax = 10
const pairChance = 0.5
/** Probability that a query asks for an order that only an index of the field `v` has. */
const sortedChance = 0.7
const family = { name: 'find', leftOutChance: 0.6 }

export const findActions: readonly SwarmAction[] = [
  { name: 'define-indexes', weight: 2, family, act: defineIndexes },
  { name: 'find', weight: 8, family, act: find, checkers: { 'find-answers': findAnswers } },
]

export const findOwnActions: readonly SwarmAction[] = [
  { name: 'find-own-write', weight: 4, family, act: findOwnWrite, checkers: { 'views-fresh': viewsFresh } },
]

/** Writes a design document with some of the indexes. It replaces the definitions that the document had. */
async function defineIndexes(session: ClientSession, database: string): Promise<void> {
  const { dice } = session
  const id = dice.pick(designs)
  const { status, body } = await session.look('GET', `/${database}/${id}`)
  const parent: string | null = status === 200 ? body._rev : null
  const value = session.newValue()
  // The first two are those whose rows are looked up in each other.
  const first = dice.chance(pairChance) ? pairedIndexes : []
  const names = indexNames.slice(0, Math.max(first.length, dice.integer(1, indexNames.length)))
  const json = {
    ...session.body(value), ...(parent !== null && { _rev: parent }), language: 'query',
    views: Object.fromEntries(names.map((name, at) => [name, indexSourceOf(first[at] ?? dice.pick(swarmIndexes))])),
  }
  const [operation] = await session.ask(database, 'PUT', `/${database}/${id}${session.quorum('?')}`, { json }, [
    { kind: 'write', id, value, parent, read: readWritten },
  ])
  session.remember(operation!)
}

async function find(session: ClientSession, database: string): Promise<void> {
  const { dice } = session
  const drawn = drawSelector(dice)
  const limit = dice.integer(1, limitMax)
  const json = {
    selector: drawn.selector, limit,
    ...(dice.chance(0.3) && { use_index: dice.pick(designs) }), ...(dice.chance(0.2) && { conflicts: true }),
  }
  await session.ask(database, 'POST', `/${database}/_find`, { json }, [
    { kind: 'custom:find', id: JSON.stringify(drawn.selector), read: answer => readAnswer(answer, drawn, limit) },
  ])
}

/** Finds a document through the node that has just acknowledged a write of it. */
async function findOwnWrite(session: ClientSession, database: string, id: string): Promise<void> {
  await write(session, database, id)
  const json = {
    selector: { _id: id, v: { $gt: null } }, ...(session.dice.chance(sortedChance) && { sort: ['v'] }),
  }
  const [operation] = await session.ask(database, 'POST', `/${database}/_find`, { json }, [
    { kind: 'custom:query-own', id, read: readRevision },
  ])
  // There is no index with this order.
  if (operation!.status === 400) await defineIndexes(session, database)
}

function readRevision({ status, body }: Answer): Reading {
  return status === 200 ? { outcome: 'done', revision: body.docs[0]?._rev } : { outcome: outcomeOf(status) }
}

function readAnswer({ status, body }: Answer, { matches }: SwarmSelector, limit: number): Reading {
  if (status !== 200) return { outcome: outcomeOf(status) }
  const documents: readonly MappedBody[] = body.docs
  const wrong = documents.find(document => !matches(document))
  const ids = new Set(documents.map(({ _id }) => _id))
  const problem = wrong !== undefined ? `${wrong._id} with ${wrong.v} does not match`
    : ids.size < documents.length ? 'a document is listed twice'
      : documents.length > limit ? `${documents.length} documents are listed with the limit ${limit}` : null
  return { outcome: 'done', ...(problem !== null && { readValue: problem }) }
}
