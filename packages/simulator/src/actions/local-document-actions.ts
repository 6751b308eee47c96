/** Reads, writes and deletes local documents. */
import { localPrefix } from '@sectional/core'
import { outcomeOf, readRow, readWritten } from '../workload/client-session.ts'
import type { ClientSession, Reading, Task } from '../workload/client-session.ts'
import type { ShownRow } from '../workload/history.ts'
import type { Answer } from '../world/answer.ts'
import type { SwarmAction } from './action.ts'

export const localDocumentActions: readonly SwarmAction[] = [
  { name: 'local-write', weight: 3, act: writeLocal },
  { name: 'local-delete', weight: 1, act: deleteLocal },
  { name: 'local-read', weight: 3, act: readLocal },
]

export const manyLocalDocumentsActions: readonly SwarmAction[] = [
  { name: 'local-bulk', weight: 2, act: writeManyLocals },
  { name: 'local-list', weight: 1, act: listLocals },
]

const bulkMax = 5

async function writeLocal(session: ClientSession, database: string, id: string): Promise<void> {
  const value = session.drawValue()
  const target = `/${database}/_local/${id}${session.quorum('?')}`
  await session.ask(database, 'PUT', target, { json: session.body(value) }, [
    { kind: 'local-write', id, value, read: readWritten },
  ])
}

async function deleteLocal(session: ClientSession, database: string, id: string): Promise<void> {
  const target = `/${database}/_local/${id}${session.quorum('?')}`
  await session.ask(database, 'DELETE', target, {}, [{ kind: 'local-delete', id, read: readWritten }])
}

/** Writes and deletes some local documents, each once, with one request. The query's `w` applies to them. */
async function writeManyLocals(session: ClientSession, database: string): Promise<void> {
  const { dice } = session
  const ids = new Set(Array.from({ length: dice.integer(1, bulkMax) }, () => session.documentId()))
  const writes = [...ids].map(id => ({ id, value: session.drawValue(), deleted: dice.chance(0.2) }))
  const docs = writes.map(({ id, value, deleted }) =>
    ({ _id: `_local/${id}`, ...(deleted ? { _deleted: true } : session.body(value)) }))
  const tasks = writes.map(({ id, value, deleted }, index): Task => ({
    kind: deleted ? 'local-delete' : 'local-write', id, value, read: answer => readRow(answer, index),
  }))
  await session.ask(database, 'POST', `/${database}/_bulk_docs${session.quorum('?')}`, { json: { docs } }, tasks)
}

/** Lists all local documents. */
export async function listLocals(session: ClientSession, database: string): Promise<void> {
  await session.ask(database, 'GET', `/${database}/_local_docs?include_docs=true`, {}, [
    { kind: 'local-list', id: '', read: readLocalList },
  ])
}

export async function readLocal(session: ClientSession, database: string, id: string): Promise<void> {
  const { r } = session.options
  const target = `/${database}/_local/${id}${r === undefined ? '' : `?r=${r}`}`
  await session.ask(database, 'GET', target, {}, [{ kind: 'local-read', id, read: readLocalDocument }])
}

function readLocalDocument({ status, body }: Answer): Reading {
  if (status === 200) return { outcome: 'done', readValue: body.v }
  return { outcome: status === 404 ? 'done' : 'failed' }
}

function readLocalList({ status, body }: Answer): Reading {
  if (status !== 200 || !Array.isArray(body?.rows)) return { outcome: outcomeOf(status) }
  return { outcome: 'done', rows: body.rows.map(({ id, doc }: LocalRow): ShownRow =>
    ({ id: id.slice(localPrefix.length), revision: doc._rev, value: doc.v })) }
}

interface LocalRow { readonly id: string; readonly doc: { readonly _rev: string; readonly v: string } }
