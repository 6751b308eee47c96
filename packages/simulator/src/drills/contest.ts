/** Edits of some documents through several nodes, recorded with their answers, which the rules of `history/` judge. */
import type { ShardId } from '@sectional/core'
import { readReplicas } from '../checkers/disk-contents.ts'
import type { Findings } from '../checkers/final-state.ts'
import { checkHistory } from '../history/index.ts'
import type { Edit, EditOutcome, FinalDocument } from '../history/index.ts'
import type { DrillContext } from './drill.ts'
import type { ShardRoles } from './shard-roles.ts'

export interface Contest {
  readonly context: DrillContext
  readonly shard: ShardId
  /** The range of the documents, as nodes show it. */
  readonly range: string
  readonly roles: ShardRoles
  readonly edits: Edit[]
  /** Values of edits that must not have taken effect, with the reason. */
  readonly excluded: Map<string, string>
  /** Documents with their first revisions. */
  readonly documents: ReadonlyMap<string, string>
}

export async function edit(
  contest: Contest, through: number, id: string, parent: string | null, value: string,
): Promise<Awaited<ReturnType<DrillContext['world']['write']>>> {
  const { context: { database, world }, edits } = contest
  const startMs = world.nowMs
  const answer = await world.write(through, database, id, { ...(parent !== null && { _rev: parent }), v: value })
  const { body, status } = answer
  world.say(`${database}/${id} ${parent ?? ''} ${value} through node ${through}: ${status} ${JSON.stringify(body)}`)
  edits.push({
    label: `an edit through node ${through} (${status})`, document: id, startMs, endMs: world.nowMs, parent,
    content: value, deleted: false, exclusive: true, kept: true, copies: 0, outcome: outcomeOf(status),
    ...(status < 300 && status > 0 && { revision: body.rev }),
  })
  return answer
}

/** Deletes a document. */
export async function remove(
  { context: { database, world }, edits }: Contest, through: number, id: string, parent: string,
): Promise<Awaited<ReturnType<DrillContext['world']['write']>>> {
  const startMs = world.nowMs
  const answer = await world.send(through, 'DELETE', `/${database}/${id}?rev=${parent}`)
  const { body, status } = answer
  world.say(`deletion of ${database}/${id} ${parent} through node ${through}: ${status} ${JSON.stringify(body)}`)
  edits.push({
    label: `a deletion through node ${through} (${status})`, document: id, startMs, endMs: world.nowMs, parent,
    content: undefined, deleted: true, exclusive: true, kept: true, copies: 0,
    outcome: status === 200 ? 'done' : outcomeOf(status), ...(status < 300 && status > 0 && { revision: body.rev }),
  })
  return answer
}

function outcomeOf(status: number): EditOutcome {
  if (status === 201) return 'done'
  if (status === 202) return 'accepted'
  return status === 409 ? 'conflict' : status >= 400 && status < 500 && status !== 408 ? 'refused' : 'unknown'
}

/** Judges the answers together with the revision trees at rest. */
export async function judged({ context: { database, world }, edits, excluded }: Contest): Promise<Findings> {
  const record = world.node(1).inside!.control.state()!.databases.get(database)!
  const finals = new Map<string, FinalDocument>()
  // Documents whose first revision got 202 take no part in the contest, but are kept, too.
  const ids = new Set(edits.map(({ document }) => document))
  for (const replica of await readReplicas(world.nodes, record)) {
    for (const id of ids) {
      const found = replica.documents.get(id)
      if (found === undefined) continue
      finals.set(id, { branches: found.branches.map(({ path, deleted }, index) => ({
        revisions: path.ids.map((hash, at) => `${path.start - at}-${hash}`), deleted,
        ...contentOf(found.leaves[index]?.body),
      })) })
    }
  }
  const shown = [...finals].flatMap(([id, { branches }]) => branches.flatMap(({ content, revisions }) => {
    const reason = content === undefined ? undefined : excluded.get(content)
    return reason === undefined ? [] : [`${id} ends with the leaf ${revisions[0]} of ${content}, although ${reason}`]
  }))
  const findings = checkHistory({ edits, reads: [], localReads: [], localWrites: [], finals })
  return [...findings.map(({ rule, text }) => `${rule}: ${text}`), ...shown]
}

function contentOf(body: string | undefined): { readonly content?: string } {
  return body === undefined ? {} : { content: (JSON.parse(body) as { readonly v: string }).v }
}

/**
 * Edits a document with one row of a bulk request. The row before it is an edit that conflicts, so that the rows of the
 * request and the revisions that it makes are numbered differently.
 */
export async function editInRow(
  contest: Contest, through: number, id: string, parent: string, value: string,
): Promise<void> {
  const { context: { database, world } } = contest
  const startMs = world.nowMs
  const docs = [{ _id: id, v: 'no parent' }, { _id: id, _rev: parent, v: value }]
  const answer = await world.send(through, 'POST', `/${database}/_bulk_docs`, { docs })
  world.say(`${database}/${id} ${parent} ${value} in a row through node ${through}: ${JSON.stringify(answer.body)}`)
  docs.forEach(({ v }, row) => {
    const { accepted, error, rev }: RowOfBulk = Array.isArray(answer.body) ? answer.body[row] : {}
    contest.edits.push({
      label: `an edit in row ${row} of a request through node ${through} (${answer.status})`, document: id, startMs,
      endMs: world.nowMs, parent: row === 0 ? null : parent, content: v, deleted: false, exclusive: true, kept: true,
      copies: 0,
      outcome: rev === undefined ? error === 'conflict' ? 'conflict' : 'unknown' : accepted ? 'accepted' : 'done',
      ...(rev !== undefined && { revision: rev }),
    })
  })
}

interface RowOfBulk { readonly rev?: string; readonly accepted?: true; readonly error?: string }

/** Edits the documents with one request. Returns those whose edit a majority has confirmed. */
export async function editTogether(
  { context: { database, world }, edits }: Contest, through: number, parents: ReadonlyMap<string, string>,
): Promise<ReadonlyMap<string, string>> {
  const startMs = world.nowMs
  const docs = [...parents].map(([_id, _rev]) => ({ _id, _rev, v: 'third' }))
  const { body, status } = await world.send(through, 'POST', `/${database}/_bulk_docs`, { docs })
  world.say(`edits of ${docs.length} documents through node ${through}: ${status} ${JSON.stringify(body)}`)
  const rows: readonly { readonly rev?: string; readonly error?: string }[] = Array.isArray(body) ? body : []
  docs.forEach(({ _id, _rev, v }, index) => {
    const { error, rev } = rows[index] ?? {}
    edits.push({
      label: `an edit through node ${through} (${status})`, document: _id, startMs, endMs: world.nowMs, parent: _rev,
      content: v, deleted: false, exclusive: true, kept: true, copies: 0,
      outcome: rev !== undefined ? outcomeOf(status) : error === 'conflict' ? 'conflict' : 'unknown',
      ...(rev !== undefined && { revision: rev }),
    })
  })
  return status === 201
    ? new Map(docs.flatMap(({ _id }, index) => rows[index]?.rev === undefined ? [] : [[_id, rows[index].rev]]))
    : new Map()
}
