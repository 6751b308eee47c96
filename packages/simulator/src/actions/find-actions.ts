/** Defines Mango's indexes in a design document, changes them, and finds documents by selectors. */
import { findAnswers } from '../checkers/find-answers.ts'
import { indexSourceOf, pairedIndexes, swarmIndexes } from '../views/swarm-indexes.ts'
import { drawSelector, type SwarmSelector } from '../views/swarm-selectors.ts'
import type { MappedBody } from '../views/view-functions.ts'
import { outcomeOf, readWritten } from '../workload/client-session.ts'
import type { ClientSession, Reading } from '../workload/client-session.ts'
import type { Answer } from '../world/answer.ts'
import type { SwarmAction } from './action.ts'

const designs = ['_design/index', '_design/other']
const indexNames = ['a', 'b', 'c']
const limitMax = 10
const pairChance = 0.5
const family = { name: 'find', leftOutChance: 0.6 }

export const findActions: readonly SwarmAction[] = [
  { name: 'define-indexes', weight: 2, family, act: defineIndexes },
  { name: 'find', weight: 8, family, act: find, checkers: { 'find-answers': findAnswers } },
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
