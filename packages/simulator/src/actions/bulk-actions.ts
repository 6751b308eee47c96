/** `_bulk_docs` requests: edits, and revisions that were created elsewhere. */
import { parseRevision, revisionHash } from '@sectional/core'
import type { ContentName } from '../workload/attachment-content.ts'
import { outcomeOf, readRow } from '../workload/client-session.ts'
import type { ClientSession, Reading, Task } from '../workload/client-session.ts'
import type { ShownRow } from '../workload/history.ts'
import type { Answer } from '../world/answer.ts'
import type { SwarmAction } from './action.ts'
import { inline } from './attachment-actions.ts'
import { readList } from './document-actions.ts'

const bulkGetMax = 6

export const bulkActions: readonly SwarmAction[] = [
  { name: 'bulk', weight: 4, act: bulk },
  { name: 'graft', weight: 2, act: graft },
]

export const bulkReadActions: readonly SwarmAction[] = [{ name: 'bulk-get', weight: 2, act: bulkGet }]

interface BulkWrite {
  readonly id: string
  readonly parent: string | null
  readonly deleted: boolean
  readonly value: string
  readonly body: object
}

/** Probability with which a request also edits a revision that it makes itself. */
const chainedChance = 0.2

async function bulk(session: ClientSession, database: string): Promise<void> {
  const { dice, options } = session
  const ids = Array.from({ length: dice.integer(1, options.bulkMax) }, () => session.documentId())
  const newest = dice.chance(0.5) ? await newestRevisions(session, database, ids) : undefined
  const writes = ids.map((id): BulkWrite => {
    const parent = newest?.get(id) ?? session.known(database, id) ?? null
    const deleted = dice.chance(0.1) && parent !== null
    const value = deleted ? session.newValue() : session.drawValue()
    return { id, parent, deleted, value, body: session.body(value) }
  })
  const edited = dice.pick(writes)
  // The edit may also come before the one that makes its parent.
  if (!edited.deleted && dice.chance(chainedChance)) {
    writes.splice(dice.integer(0, writes.length), 0, editOf(session, edited))
  }
  const docs = writes.map(({ id, parent, body, deleted }) => ({
    _id: id,
    ...(parent === null ? {} : { _rev: parent }),
    ...(deleted ? { _deleted: true } : {}),
    ...body,
  }))
  const tasks = writes.map(({ id, parent, value, deleted }, index): Task => ({
    kind: deleted ? 'delete' : 'write', id, parent, value, read: answer => readRow(answer, index),
  }))
  const json = { docs, ...(options.w === undefined ? {} : { w: options.w }) }
  const operations = await session.ask(database, 'POST', `/${database}/_bulk_docs`, { json }, tasks)
  for (const operation of operations) session.remember(operation)
}

/** Returns an edit of the revision that a write makes if it succeeds. */
function editOf(session: ClientSession, { id, parent, body }: BulkWrite): BulkWrite {
  const generation = parent === null ? 1 : parseRevision(parent).generation + 1
  const hash = revisionHash({ deleted: false, parent, body: Buffer.from(JSON.stringify(body)) })
  const value = session.drawValue()
  return { id, parent: `${generation}-${hash}`, deleted: false, value, body: session.body(value) }
}

/** Writes revisions that were created elsewhere, as a replicator does. Most of them create conflicting branches. */
async function graft(session: ClientSession, database: string, id: string): Promise<void> {
  const { dice, options } = session
  const value = session.newValue()
  // A replicator sends the whole ancestry; a shorter one would leave replicas with trees of different depth.
  const { body } = await session.look('GET', `/${database}/${id}?revs=true`)
  const known: readonly string[] = body?._revisions?.ids ?? []
  const ids = dice.chance(0.3)
    ? [dice.hash(), dice.hash()] : [dice.hash(), ...known.slice(dice.integer(0, Math.min(2, known.length)))]
  const revision = `${ids.length}-${ids[0]}`
  const contents: Record<string, ContentName | 'inherited'> = {}
  const hasAttachments = (options.operations['write-attachments'] ?? 0) > 0 && dice.chance(0.3)
  const attachments = hasAttachments ? { _attachments: inline(session, contents) } : {}
  const tombstone = dice.chance(0.15)
  const path = { start: ids.length, ids }
  const doc = {
    _id: id, _rev: revision, _revisions: path, ...(tombstone ? { _deleted: true } : {}), ...session.body(value),
    ...attachments,
  }
  const json = { docs: [doc], new_edits: false, ...(options.w === undefined ? {} : { w: options.w }) }
  await session.ask(database, 'POST', `/${database}/_bulk_docs`, { json }, [{
    kind: 'graft', id, value, attachments: { inherits: false, contents }, paths: [path], tombstone,
    read: answer => readGraft(answer, revision),
  }])
}

/** Reads all leaves of some documents, and of others a revision that the client knows, or those that replaced it. */
async function bulkGet(session: ClientSession, database: string): Promise<void> {
  const { dice, options: { r } } = session
  const docs = Array.from({ length: dice.integer(1, bulkGetMax) }, () => {
    const id = session.documentId()
    const rev = dice.chance(0.5) ? session.known(database, id) ?? session.replaced(database, id) : undefined
    return { id, ...(rev !== undefined && { rev }) }
  })
  const query = new URLSearchParams({
    revs: 'true', ...(dice.chance(0.5) && { latest: 'true' }), ...(r !== undefined && { r: String(r) }),
  })
  await session.ask(database, 'POST', `/${database}/_bulk_get?${query.toString()}`, { json: { docs } }, [
    { kind: 'open-revisions', id: docs.map(({ id }) => id).join(' '), read: readBulkGet },
  ])
}

function readBulkGet({ status, body }: Answer): Reading {
  if (status !== 200 || !Array.isArray(body?.results)) return { outcome: outcomeOf(status) }
  const rows = body.results.flatMap(({ id, docs }: ReadResult) => docs.flatMap(({ ok }): ShownRow[] => {
    if (ok === undefined) return []
    const { start, ids: [, parent] } = ok._revisions
    return [{
      id, revision: ok._rev, value: ok.v, ...(parent !== undefined && { parent: `${start - 1}-${parent}` }),
    }]
  }))
  return { outcome: 'done', rows }
}

interface ReadResult {
  readonly id: string
  readonly docs: readonly { readonly ok?: {
    readonly _rev: string
    readonly _revisions: { readonly start: number; readonly ids: readonly string[] }
    readonly v: string
  } }[]
}

/** Returns the winners of the documents that are not deleted. */
async function newestRevisions(
  session: ClientSession, database: string, keys: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const answer = await session.look('POST', `/${database}/_all_docs`, { keys: [...new Set(keys)] })
  const rows = readList(answer).rows ?? []
  return new Map(rows.flatMap(({ id, revision }) => revision === null ? [] : [[id, revision]]))
}

/** With `new_edits=false` the answer has rows for failures only. */
function readGraft({ status, body }: Answer, revision: string): Reading {
  if (!Array.isArray(body)) return { outcome: outcomeOf(status) === 'failed' ? 'failed' : 'unknown' }
  if (body.length > 0) return { outcome: 'unknown' }
  return { outcome: status === 202 ? 'accepted' : 'done', revision }
}
