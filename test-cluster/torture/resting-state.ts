/** Waits until the cluster is whole after faults, and reads everything through every node. */
import type { FinalBranch, FinalDocument } from '@sectional/simulator/history'
import type { Answer } from '../src/http-client.ts'
import type { TestCluster } from '../src/test-cluster.ts'
import type { TestNode } from '../src/test-node.ts'
import type { TortureFinding } from './history-file.ts'
import { type Recorder, withMissing } from './recorder.ts'
import {
  contents, database, foundDocuments, isWorkload, localDocuments, type ShownDocument, viewPath, viewRows,
} from './torture-database.ts'

/**
 * Milliseconds after the last fault until all replicas are equal: 75 s until the periodic pass of anti-entropy
 * (docs/reliability.md#guarantees-for-documents), and 15 s until all nodes serve requests.
 */
const wholeMsMax = 90_000
/** At rest, each request gets an answer within this time. */
const answerMsMax = 20_000

interface OpenRevision {
  readonly ok?: {
    readonly _rev: string
    readonly _deleted?: boolean
    readonly v?: string
    readonly _revisions: { readonly start: number; readonly ids: readonly string[] }
  }
}

/** Waits for the end of all consequences of faults, and records reads at rest. Returns what is wrong with the whole. */
export async function readAtRest(cluster: TestCluster, recorder: Recorder): Promise<readonly TortureFinding[]> {
  try {
    await cluster.ready()
    await cluster.converge(database, wholeMsMax)
  } catch (error) {
    return [{ rule: 'whole', text: (error as Error).message }]
  }
  recorder.rest()
  const trees = new Map<TestNode, ReadonlyMap<string, FinalDocument>>()
  const findings: TortureFinding[] = []
  const etags = new Set<string>()
  try {
    for (const node of cluster.nodes) {
      trees.set(node, await readTrees(node, recorder))
      await readLists(node, recorder)
      await readLocalDocuments(node, recorder)
      const indexes = await readIndexes(node, recorder)
      findings.push(...indexes.findings)
      etags.add(indexes.etag)
    }
  } catch (error) {
    return [{ rule: 'answers-at-rest', text: (error as Error).message }]
  }
  const [first, ...others] = trees.values()
  recorder.finish(first!)
  if (etags.size > 1) findings.push({ rule: 'views-at-rest', text: `the view has ETags ${[...etags].join(' and ')}` })
  return [...findings, ...others.flatMap(other => differences(first!, other))]
}

/** Reads each document, and all of its leaves, through the node. */
async function readTrees(node: TestNode, recorder: Recorder): Promise<ReadonlyMap<string, FinalDocument>> {
  const finals = new Map<string, FinalDocument>()
  for (const document of recorder.documents) {
    const invocation = recorder.begin(`GET ${document} at rest by node${node.number}`)
    const { status, body } = await send(node, document, { missing: true })
    recorder.read(invocation, { document, ...(status === 404
      ? { revision: null }
      : { revision: body._rev, content: body.v }) })
    const leaves = await send(node, `${document}?open_revs=all&revs=true`, { missing: true })
    if (leaves.status === 404) continue
    const branches = (leaves.body as OpenRevision[]).flatMap(({ ok }): FinalBranch[] => ok === undefined ? [] : [{
      revisions: ok._revisions.ids.map((hash, index) => `${ok._revisions.start - index}-${hash}`),
      deleted: ok._deleted ?? false, ...(ok.v !== undefined && { content: ok.v }),
    }])
    if (branches.length > 0) finals.set(document, { branches })
  }
  return finals
}

interface ListRow {
  readonly id: string
  readonly value: { readonly rev: string }
  readonly doc: { readonly v: string }
}
interface FeedRow {
  readonly id: string
  readonly deleted?: boolean
  readonly changes: readonly { readonly rev: string }[]
}

/** Reads `_all_docs` and the changes feed. Both must show every document. */
async function readLists(node: TestNode, recorder: Recorder): Promise<void> {
  const list = recorder.begin(`_all_docs at rest by node${node.number}`)
  const { body: { rows } } = await send(node, '_all_docs?include_docs=true')
  const listed = (rows as ListRow[]).filter(({ id }) => isWorkload(id)).map(({ id, value, doc }) =>
    ({ document: id, revision: value.rev, content: doc.v }))
  recorder.listed(list, withMissing(listed, recorder.documents))
  const feed = recorder.begin(`_changes at rest by node${node.number}`)
  const { body: { results } } = await send(node, '_changes')
  const changed = (results as FeedRow[]).filter(({ id }) => isWorkload(id)).map(
    ({ id, deleted, changes }) => ({ document: id, revision: deleted ? null : changes[0]!.rev }))
  recorder.listed(feed, withMissing(changed, recorder.documents))
}

/**
 * Reads the view and the query of each content. Both must show every document.
 *
 * @returns what is wrong with the view, and its ETag
 */
async function readIndexes(
  node: TestNode, recorder: Recorder,
): Promise<{ readonly findings: readonly TortureFinding[]; readonly etag: string }> {
  const view = recorder.begin(`the view at rest by node${node.number}`)
  const answer = await send(node, `${viewPath}?reduce=false`)
  const rows = complete(viewRows(answer), answer)
  recorder.listed(view, withMissing(rows, recorder.documents))
  const query = recorder.begin(`_find at rest by node${node.number}`)
  const found: ShownDocument[] = []
  for (const v of contents) {
    const json = { selector: { v }, limit: 1_000_000, use_index: ['queries', 'by_content'] }
    const page = await send(node, '_find', { json })
    found.push(...complete(foundDocuments(page), page))
  }
  recorder.listed(query, withMissing(found, recorder.documents))
  const findings: TortureFinding[] = []
  const compare = (what: string, shown: unknown, expected: unknown): void => {
    const [text, wanted] = [JSON.stringify(shown), JSON.stringify(expected)]
    if (text === wanted) return
    findings.push({ rule: 'views-at-rest', text: `${what} by node${node.number} is ${text} instead of ${wanted}` })
  }
  const keys = (answer.body.rows as { id: string; key: unknown }[]).map(({ id, key }) => JSON.stringify([key, id]))
  compare('the order of the view', keys, keys.toSorted())
  compare('total_rows', answer.body.total_rows, rows.length)
  compare('the number of rows', rows.length, new Set(rows.map(({ document }) => document)).size)
  compare('the number of found documents', found.length, rows.length)
  const stale = await send(node, `${viewPath}?reduce=false&update=false`)
  compare('the view with update=false', stale.body.rows, answer.body.rows)
  const groups = await send(node, `${viewPath}?group_level=1`)
  const counts = Map.groupBy(answer.body.rows as { key: [string, string] }[], ({ key: [epoch] }) => epoch)
  compare('the reduction of the view', groups.body.rows,
    [...counts].map(([epoch, { length }]) => ({ key: [epoch], value: length })))
  return { findings, etag: String(answer.headers.etag) }
}

/** @throws Error when the answer does not have all rows */
function complete<T>(rows: T | undefined, { body }: Answer): T {
  if (rows === undefined) throw new Error(`an answer at rest is not complete: ${JSON.stringify(body).slice(0, 1000)}`)
  return rows
}

async function readLocalDocuments(node: TestNode, recorder: Recorder): Promise<void> {
  for (const name of localDocuments) {
    const document = `_local/${name}`
    const invocation = recorder.begin(`GET ${document} at rest by node${node.number}`)
    const { status, body } = await send(node, document, { missing: true })
    recorder.localRead(invocation, document, status === 404 ? null : body.v)
  }
}

/**
 * @param missing whether the answer may be 404
 * @throws Error when there is no answer in time, or when its status is another one
 */
async function send(
  node: TestNode, path: string, { json, missing = false }: { readonly json?: object; readonly missing?: boolean } = {},
): Promise<Answer> {
  const method = json === undefined ? 'GET' : 'POST'
  const answer = await node.http.send(method, `/${database}/${path}`, { json, timeoutMs: answerMsMax })
  if (answer.status === 200 || (missing && answer.status === 404)) return answer
  throw new Error(`${method} ${path} by ${node.name}: ${answer.status} ${JSON.stringify(answer.body)}`)
}

function differences(
  left: ReadonlyMap<string, FinalDocument>, right: ReadonlyMap<string, FinalDocument>,
): TortureFinding[] {
  const text = (document: FinalDocument | undefined): string =>
    JSON.stringify((document?.branches ?? []).map(branch => JSON.stringify(branch)).sort())
  return [...new Set([...left.keys(), ...right.keys()])].flatMap(document => {
    const [a, b] = [text(left.get(document)), text(right.get(document))]
    return a === b ? [] : [{ rule: 'replicas-equal', text: `two nodes show ${document} as ${a} and ${b}` }]
  })
}
