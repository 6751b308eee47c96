/** Writes and deletes local documents. */
import { readWritten } from '../workload/client-session.ts'
import type { ClientSession } from '../workload/client-session.ts'
import type { SwarmAction } from './action.ts'

export const localDocumentActions: readonly SwarmAction[] = [
  { name: 'local-write', weight: 3, act: writeLocal },
  { name: 'local-delete', weight: 1, act: deleteLocal },
]

async function writeLocal(session: ClientSession, database: string, id: string): Promise<void> {
  const value = session.newValue()
  const target = `/${database}/_local/${id}${session.quorum('?')}`
  await session.ask(database, 'PUT', target, { json: session.body(value) }, [
    { kind: 'local-write', id, value, read: readWritten },
  ])
}

async function deleteLocal(session: ClientSession, database: string, id: string): Promise<void> {
  const target = `/${database}/_local/${id}${session.quorum('?')}`
  await session.ask(database, 'DELETE', target, {}, [{ kind: 'local-delete', id, read: readWritten }])
}
