/** Reads, writes and deletes local documents. */
import { readWritten } from '../workload/client-session.ts'
import type { ClientSession, Reading } from '../workload/client-session.ts'
import type { Answer } from '../world/answer.ts'
import type { SwarmAction } from './action.ts'

export const localDocumentActions: readonly SwarmAction[] = [
  { name: 'local-write', weight: 3, act: writeLocal },
  { name: 'local-delete', weight: 1, act: deleteLocal },
  { name: 'local-read', weight: 3, act: readLocal },
]

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

export async function readLocal(session: ClientSession, database: string, id: string): Promise<void> {
  const { r } = session.options
  const target = `/${database}/_local/${id}${r === undefined ? '' : `?r=${r}`}`
  await session.ask(database, 'GET', target, {}, [{ kind: 'local-read', id, read: readLocalDocument }])
}

function readLocalDocument({ status, body }: Answer): Reading {
  if (status === 200) return { outcome: 'done', readValue: body.v }
  return { outcome: status === 404 ? 'done' : 'failed' }
}
