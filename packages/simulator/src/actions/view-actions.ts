/** Defines views in design documents, changes the definitions, queries the views, and removes unused indexes. */
import { viewAnswers } from '../checkers/view-answers.ts'
import { viewsFresh } from '../checkers/views-fresh.ts'
import { answerProblem } from '../views/view-answer.ts'
import { revisionView, sourceOf, swarmViews, viewOfSource } from '../views/view-functions.ts'
import type { ViewSource } from '../views/view-functions.ts'
import { drawQuery, queryText } from '../views/view-query.ts'
import type { SwarmQuery } from '../views/view-query.ts'
import { outcomeOf, readWritten } from '../workload/client-session.ts'
import type { ClientSession, Reading } from '../workload/client-session.ts'
import type { Answer } from '../world/answer.ts'
import type { SwarmAction } from './action.ts'
import { write } from './document-actions.ts'
import { purge } from './purge-actions.ts'

/** Design documents whose views change. */
const changingDesigns = ['_design/first', '_design/second']
const viewNames = ['a', 'b', 'c']
/** The design document with the view that shows the revisions of documents. */
const revisionDesign = '_design/revisions'

const family = { name: 'views', leftOutChance: 0.6 }

export const viewActions: readonly SwarmAction[] = [
  { name: 'define-views', weight: 2, family, act: defineViews },
  { name: 'query-view', weight: 8, family, act: queryView, checkers: { 'view-answers': viewAnswers } },
  {
    name: 'query-own-write', weight: 5, family, checkers: { 'views-fresh': viewsFresh },
    act: (session, database, id) => queryAfter(session, database, id, write),
  },
  {
    name: 'query-own-purge', weight: 1, family, checkers: { 'views-fresh': viewsFresh },
    act: (session, database, id) => queryAfter(session, database, id, () => purge(session, database, id, 'all leaves')),
  },
  { name: 'clean-views', weight: 1, family, act: cleanViews },
]

/** Writes a design document with some of the views. It replaces the definitions that the document had. */
async function defineViews(session: ClientSession, database: string): Promise<void> {
  const { dice } = session
  const views = viewNames.slice(0, dice.integer(1, viewNames.length))
    .map(name => [name, sourceOf(dice.pick(swarmViews))] as const)
  await writeDesign(session, database, dice.pick(changingDesigns), Object.fromEntries(views))
}

async function writeDesign(
  session: ClientSession, database: string, id: string, views: Readonly<Record<string, ViewSource>>,
): Promise<void> {
  const { status, body } = await session.look('GET', `/${database}/${id}`)
  const parent: string | null = status === 200 ? body._rev : null
  const value = session.newValue()
  const json = { ...session.body(value), ...(parent !== null && { _rev: parent }), views }
  const [operation] = await session.ask(database, 'PUT', `/${database}/${id}${session.quorum('?')}`, { json }, [
    { kind: 'write', id, value, parent, read: readWritten },
  ])
  session.remember(operation!)
}

/** Queries one of the views, and records what is wrong with the answer itself. */
async function queryView(session: ClientSession, database: string): Promise<void> {
  const { dice } = session
  const design = dice.pick(changingDesigns)
  const { status, body } = await session.look('GET', `/${database}/${design}`)
  if (status === 404) return defineViews(session, database)
  if (status !== 200) return
  const sources: Readonly<Record<string, ViewSource>> = body.views
  const name = dice.pick(Object.keys(sources))
  const view = viewOfSource(sources[name]!)
  const query = drawQuery(dice, view)
  const target = `/${database}/${design}/_view/${name}?${queryText(query, view.reduce !== null)}`
  await session.ask(database, 'GET', target, {}, [
    { kind: 'custom:query-view', id: `${design}/${name}`, read: answer => readAnswer(answer, query) },
  ])
}

function readAnswer({ status, body }: Answer, query: SwarmQuery): Reading {
  if (status !== 200) return { outcome: outcomeOf(status) }
  const problem = answerProblem(query, body.rows)
  return { outcome: 'done', ...(problem !== null && { readValue: problem }) }
}

/** Queries the revision of a document through the node that has just acknowledged a change of it. */
async function queryAfter(
  session: ClientSession, database: string, id: string,
  change: (session: ClientSession, database: string, id: string) => Promise<void>,
): Promise<void> {
  await change(session, database, id)
  const target = `/${database}/${revisionDesign}/_view/revision?reduce=false&key=${encodeURIComponent(`"${id}"`)}`
  const [operation] = await session.ask(database, 'GET', target, {}, [
    { kind: 'custom:query-own', id, read: readRevision },
  ])
  if (operation!.status !== 404) return
  await writeDesign(session, database, revisionDesign, { revision: sourceOf(revisionView) })
}

function readRevision({ status, body }: Answer): Reading {
  return status === 200 ? { outcome: 'done', revision: body.rows[0]?.value } : { outcome: outcomeOf(status) }
}

async function cleanViews(session: ClientSession, database: string): Promise<void> {
  await session.ask(database, 'POST', `/${database}/_view_cleanup`, { json: {} }, [
    { kind: 'custom:clean-views', id: '', read: ({ status }) => ({ outcome: outcomeOf(status) }) },
  ])
}
