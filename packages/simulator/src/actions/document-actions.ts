/** Reads, writes and deletes one document. */
import { outcomeOf, readWritten } from '../workload/client-session.ts'
import type { ClientSession, Reading } from '../workload/client-session.ts'
import type { ShownRow } from '../workload/history.ts'
import type { Answer } from '../world/answer.ts'
import type { SwarmAction } from './action.ts'

/** Probability with which a client that knows a document's revision reads it again before a write. */
const refreshChance = 0.3
const keysMax = 5

export const documentActions: readonly SwarmAction[] = [
  { name: 'read', weight: 10, act: read },
  { name: 'open-revisions', weight: 2, act: openRevisions },
  { name: 'list', weight: 3, act: list },
  { name: 'write', weight: 14, act: write },
  { name: 'blind-write', weight: 4, act: (session, database, id) => put(session, database, id, null) },
  {
    name: 'stale-write', weight: 2,
    act: (session, database, id) => put(session, database, id, session.replaced(database, id) ?? null),
  },
  { name: 'delete', weight: 3, act: remove },
  { name: 'list-keys', weight: 2, act: listKeys },
  { name: 'list-partition', weight: 2, act: listPartition },
]

async function read(session: ClientSession, database: string, id: string): Promise<void> {
  const { r } = session.options
  const target = `/${database}/${id}${r === undefined ? '' : `?r=${r}`}`
  const [operation] = await session.ask(database, 'GET', target, {}, [{ kind: 'read', id, read: readDocument }])
  if (operation?.revision !== undefined) session.remember(operation)
}

async function openRevisions(session: ClientSession, database: string, id: string): Promise<void> {
  await session.ask(database, 'GET', `/${database}/${id}?open_revs=all&revs=true`, {}, [
    { kind: 'open-revisions', id, read: answer => readLeaves(answer, id) },
  ])
}

/** Reads all documents of a database. */
export async function list(session: ClientSession, database: string): Promise<void> {
  await session.ask(database, 'GET', `/${database}/_all_docs?include_docs=true&conflicts=true`, {}, [
    { kind: 'list', id: '', read: readList },
  ])
}

/** Reads all documents of a partition, or of the database where there are no partitions. */
async function listPartition(session: ClientSession, database: string): Promise<void> {
  const [partition, name] = session.documentId().split(':')
  if (name === undefined) return list(session, database)
  await session.ask(database, 'GET', `/${database}/_partition/${partition}/_all_docs?include_docs=true`, {}, [
    { kind: 'list', id: `${partition}:*`, read: readList },
  ])
}

/** Reads some documents by their keys, deleted ones too. */
async function listKeys(session: ClientSession, database: string): Promise<void> {
  const keys = Array.from({ length: session.dice.integer(1, keysMax) }, () => session.documentId())
  const target = `/${database}/_all_docs${session.dice.chance(0.5) ? '?include_docs=true' : ''}`
  await session.ask(database, 'POST', target, { json: { keys } }, [
    { kind: 'list', id: keys.join(' '), read: readList },
  ])
}

/** Writes a new revision of a document, on top of the newest one that the client knows. */
export async function write(session: ClientSession, database: string, id: string): Promise<void> {
  if (session.known(database, id) === undefined || session.dice.chance(refreshChance)) await read(session, database, id)
  await put(session, database, id, session.known(database, id) ?? null)
}

async function put(session: ClientSession, database: string, id: string, parent: string | null): Promise<void> {
  const value = session.drawValue()
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

/** @param answer the answer to `_all_docs` with or without keys, and with or without documents */
export function readList({ status, body }: Answer): Reading {
  if (status !== 200 || !Array.isArray(body?.rows)) return { outcome: outcomeOf(status) }
  return { outcome: 'done', rows: body.rows.flatMap((row: ListRow): ShownRow[] => {
    if (row.error !== undefined && row.error !== 'not_found') return []
    const isGone = row.error !== undefined || row.value?.deleted === true
    return [{ id: row.id ?? row.key, revision: isGone ? null : row.value!.rev, ...(row.doc && { value: row.doc.v }) }]
  }) }
}

interface ListRow {
  readonly key: string
  readonly id?: string
  readonly error?: string
  readonly value?: { readonly rev: string; readonly deleted?: true }
  readonly doc?: { readonly v: string } | null
}

function readLeaves({ status, body }: Answer, id: string): Reading {
  if (status !== 200 || !Array.isArray(body)) return { outcome: outcomeOf(status) }
  return { outcome: 'done', rows: body.flatMap(({ ok }): ShownRow[] => {
    if (ok === undefined) return []
    const { start, ids: [, parent] } = ok._revisions
    return [{
      id, revision: ok._rev, value: ok.v, ...(parent !== undefined && { parent: `${start - 1}-${parent}` }),
    }]
  }) }
}
