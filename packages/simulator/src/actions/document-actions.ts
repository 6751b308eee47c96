/** Reads, writes and deletes one document. */
import { freshReads } from '../checkers/fresh-reads.ts'
import { readWritten } from '../workload/client-session.ts'
import type { ClientSession, Reading } from '../workload/client-session.ts'
import type { Answer } from '../world/answer.ts'
import type { SwarmAction } from './action.ts'

/** Probability with which a client that knows a document's revision reads it again before a write. */
const refreshChance = 0.3

export const documentActions: readonly SwarmAction[] = [
  { name: 'read', weight: 10, act: read, checkers: { 'fresh-reads': freshReads } },
  { name: 'open-revisions', weight: 2, act: openRevisions },
  { name: 'list', weight: 1, act: list },
  { name: 'write', weight: 14, act: write },
  { name: 'blind-write', weight: 4, act: (session, database, id) => put(session, database, id, null) },
  {
    name: 'stale-write', weight: 2,
    act: (session, database, id) => put(session, database, id, session.replaced(database, id) ?? null),
  },
  { name: 'delete', weight: 3, act: remove },
]

async function read(session: ClientSession, database: string, id: string): Promise<void> {
  const { r } = session.options
  const target = `/${database}/${id}${r === undefined ? '' : `?r=${r}`}`
  const [operation] = await session.ask(database, 'GET', target, {}, [{ kind: 'read', id, read: readDocument }])
  if (operation?.revision !== undefined) session.remember(operation)
}

async function openRevisions(session: ClientSession, database: string, id: string): Promise<void> {
  await session.ask(database, 'GET', `/${database}/${id}?open_revs=all&revs=true`, {}, [])
}

async function list(session: ClientSession, database: string): Promise<void> {
  await session.ask(database, 'GET', `/${database}/_all_docs?include_docs=true&conflicts=true`, {}, [])
}

/** Writes a new revision of a document, on top of the newest one that the client knows. */
export async function write(session: ClientSession, database: string, id: string): Promise<void> {
  if (session.known(database, id) === undefined || session.dice.chance(refreshChance)) await read(session, database, id)
  await put(session, database, id, session.known(database, id) ?? null)
}

async function put(session: ClientSession, database: string, id: string, parent: string | null): Promise<void> {
  const value = session.newValue()
  const json = { ...session.body(value), ...(parent === null ? {} : { _rev: parent }) }
  const target = `/${database}/${id}${session.quorum('?')}`
  const [operation] = await session.ask(database, 'PUT', target, { json }, [
    { kind: 'write', id, value, parent, read: readWritten },
  ])
  session.remember(operation!)
}

async function remove(session: ClientSession, database: string, id: string): Promise<void> {
  const parent = session.known(database, id)
  if (parent === undefined) return read(session, database, id)
  const target = `/${database}/${id}?rev=${parent}${session.quorum('&')}`
  const [operation] = await session.ask(database, 'DELETE', target, {}, [
    { kind: 'delete', id, parent, read: readWritten },
  ])
  session.remember(operation!)
}

function readDocument({ status, body }: Answer): Reading {
  if (status === 200) return { outcome: 'done', revision: body._rev, readValue: body.v }
  return { outcome: status === 404 ? 'done' : 'failed' }
}
