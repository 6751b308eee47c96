/** Waits until the cluster is whole after faults, and reads everything through every node. */
import type { FinalBranch, FinalDocument, Read } from '@sectional/simulator/history'
import type { Answer } from '../src/http-client.ts'
import type { TestCluster } from '../src/test-cluster.ts'
import type { TestNode } from '../src/test-node.ts'
import type { TortureFinding } from './history-file.ts'
import type { Recorder } from './recorder.ts'
import { database } from './torture-database.ts'

/**
 * Milliseconds after the last fault until all replicas are equal: 75 s until the periodic pass of anti-entropy
 * (docs/reliability.md#guarantees-for-documents), and 15 s until all nodes serve requests.
 */
const wholeMsMax = 90_000
/** At rest, each request gets an answer within this time. */
const answerMsMax = 20_000
const localDocuments = ['x', 'y', 'z']

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
  try {
    for (const node of cluster.nodes) {
      trees.set(node, await readTrees(node, recorder))
      await readLists(node, recorder)
      await readLocalDocuments(node, recorder)
    }
  } catch (error) {
    return [{ rule: 'answers-at-rest', text: (error as Error).message }]
  }
  const [first, ...others] = trees.values()
  recorder.finish(first!)
  return others.flatMap(other => differences(first!, other))
}

/** Reads each document, and all of its leaves, through the node. */
async function readTrees(node: TestNode, recorder: Recorder): Promise<ReadonlyMap<string, FinalDocument>> {
  const finals = new Map<string, FinalDocument>()
  for (const document of recorder.documents) {
    const invocation = recorder.begin(`GET ${document} at rest by node${node.number}`)
    const { status, body } = await send(node, document, 200, 404)
    recorder.read(invocation, { document, ...(status === 404
      ? { revision: null }
      : { revision: body._rev, content: body.v }) })
    const leaves = await send(node, `${document}?open_revs=all&revs=true`, 200, 404)
    if (leaves.status === 404) continue
    const branches = (leaves.body as OpenRevision[]).flatMap(({ ok }): FinalBranch[] => ok === undefined ? [] : [{
      revisions: ok._revisions.ids.map((hash, index) => `${ok._revisions.start - index}-${hash}`),
      deleted: ok._deleted ?? false, ...(ok.v !== undefined && { content: ok.v }),
    }])
    if (branches.length > 0) finals.set(document, { branches })
  }
  return finals
}

/** Reads `_all_docs` and the changes feed. Both must show every document. */
async function readLists(node: TestNode, recorder: Recorder): Promise<void> {
  const list = recorder.begin(`_all_docs at rest by node${node.number}`)
  const { body: { rows } } = await send(node, '_all_docs?include_docs=true')
  const listed = (rows as { id: string; value: { rev: string }; doc: { v: string } }[]).map(({ id, value, doc }) =>
    ({ document: id, revision: value.rev, content: doc.v }))
  recorder.listed(list, withMissing(listed, recorder.documents))
  const feed = recorder.begin(`_changes at rest by node${node.number}`)
  const { body: { results } } = await send(node, '_changes')
  const changed = (results as { id: string; deleted?: boolean; changes: { rev: string }[] }[]).map(
    ({ id, deleted, changes }) => ({ document: id, revision: deleted ? null : changes[0]!.rev }))
  recorder.listed(feed, withMissing(changed, recorder.documents))
}

type ShownRow = Pick<Read, 'document' | 'revision' | 'content'>

/** Adds a row with the revision null for each document that the list does not show. */
function withMissing(rows: readonly ShownRow[], documents: ReadonlySet<string>): ShownRow[] {
  const shown = new Set(rows.map(({ document }) => document))
  return [...rows, ...[...documents].filter(each => !shown.has(each)).map(document => ({ document, revision: null }))]
}

async function readLocalDocuments(node: TestNode, recorder: Recorder): Promise<void> {
  for (const name of localDocuments) {
    const document = `_local/${name}`
    const invocation = recorder.begin(`GET ${document} at rest by node${node.number}`)
    const { status, body } = await send(node, document, 200, 404)
    recorder.localRead(invocation, document, status === 404 ? null : body.v)
  }
}

/** @throws Error when there is no answer in time, or when its status is another one */
async function send(node: TestNode, path: string, ...statuses: readonly number[]): Promise<Answer> {
  const answer = await node.http.send('GET', `/${database}/${path}`, { timeoutMs: answerMsMax })
  if ((statuses.length > 0 ? statuses : [200]).includes(answer.status)) return answer
  throw new Error(`GET ${path} by ${node.name}: ${answer.status} ${JSON.stringify(answer.body)}`)
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
