/** The database of the workload. */
import type { Answer } from '../src/http-client.ts'
import type { TestNode } from '../src/test-node.ts'

export const database = 'torture'
/** Copies of each shard (n). */
export const replicasPerShard = 3
/** The default of r and w. */
export const majority = 2
/** The contents of documents and local documents, and the names of the local ones. */
export const contents = ['a', 'b', 'c']
export const localDocuments = ['x', 'y', 'z']
/** Its rows have the key [epoch, content] and the revision as their value. */
export const viewPath = '_design/views/_view/by_epoch'

const designDocument = {
  views: {
    by_epoch: {
      map: "function (doc) { emit([doc._id.split('-')[0], doc.v], doc._rev) }",
      reduce: '_count',
    },
  },
}
const findIndex = { index: { fields: ['v', '_id'] }, name: 'by_content', ddoc: 'queries' }

export async function createDatabase({ http }: TestNode, shards: number): Promise<void> {
  const create = async (method: string, path: string, json?: object): Promise<void> => {
    const { status, body } = await http.send(method, `/${database}${path}`, { json })
    if (status > 201) throw new Error(`${method} /${database}${path}: ${status} ${JSON.stringify(body)}`)
  }
  await create('PUT', `?q=${shards}&n=${replicasPerShard}`)
  await create('PUT', '/_design/views', designDocument)
  await create('POST', '/_index', findIndex)
}

/** A document as a list, a view or a query showed it. */
export interface ShownDocument {
  readonly document: string
  readonly revision: string
  readonly content: string
}

/** Returns the rows of the view; undefined when the answer does not have all of them. */
export function viewRows({ status, body }: Answer): readonly ShownDocument[] | undefined {
  if (status !== 200 || body.error !== undefined || !Array.isArray(body.rows)) return undefined
  return (body.rows as { id: string; key: [string, string]; value: string }[]).map(
    ({ id, key: [, content], value }) => ({ document: id, revision: value, content }))
}

/** Returns the documents that a query has found; undefined when the answer does not have all of them. */
export function foundDocuments({ status, body }: Answer): readonly ShownDocument[] | undefined {
  if (status !== 200 || body.error !== undefined || !Array.isArray(body.docs)) return undefined
  return (body.docs as { _id: string; _rev: string; v: string }[]).map(
    ({ _id, _rev, v }) => ({ document: _id, revision: _rev, content: v }))
}

/** Returns whether the id is that of a document of the workload. */
export function isWorkload(id: string): boolean {
  return !id.startsWith('_design/')
}
