/** The contents of a database in one form for both ends of a replication, so that they can be compared. */
import type { HttpClient } from './http-client.ts'

const pageSize = 500
const timeoutMs = 120_000

/** Sorted leaf revisions by document id, including deleted ones. */
export type Leaves = ReadonlyMap<string, readonly string[]>

export interface ChangesAnswer {
  readonly results: readonly { readonly id: string; readonly changes: readonly { readonly rev: string }[] }[]
}

export interface BulkGetAnswer {
  readonly results: readonly {
    readonly id: string
    readonly docs: readonly { readonly ok?: StoredDocument; readonly error?: unknown }[]
  }[]
}

interface StoredDocument {
  readonly _id: string
  readonly _rev: string
  readonly _attachments?: Readonly<Record<string, { readonly content_type: string; readonly data: string }>>
}

/** The two requests to a database that the comparison needs. */
export interface ReadableDatabase {
  /** Reads a feed with `style=all_docs`. */
  changes(): Promise<ChangesAnswer>
  /** Sends `_bulk_get` with `revs` and `attachments`. */
  bulkGet(docs: readonly { readonly id: string; readonly rev: string }[]): Promise<BulkGetAnswer>
}

export function remoteDatabase(http: HttpClient, database: string): ReadableDatabase {
  const answer = async (method: string, path: string, json?: unknown) => {
    const { status, body } = await http.send(method, `/${database}/${path}`, { json, timeoutMs })
    if (status !== 200) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(body)}`)
    return body
  }
  return {
    changes: () => answer('GET', '_changes?style=all_docs'),
    bulkGet: docs => answer('POST', '_bulk_get?revs=true&attachments=true', { docs }),
  }
}

export async function leavesOf(database: ReadableDatabase): Promise<Leaves> {
  const { results } = await database.changes()
  return new Map(results.map(({ id, changes }) => [id, changes.map(({ rev }) => rev).sort()] as const)
    .sort(([a], [b]) => a < b ? -1 : 1))
}

/** Returns how many documents differ and the first one's name, or null when there is no difference. */
export function difference(left: Leaves, right: Leaves): string | null {
  const differing = [...new Set([...left.keys(), ...right.keys()])].filter(id =>
    left.get(id)?.join() !== right.get(id)?.join())
  const [first] = differing
  return first === undefined
    ? null
    : `${differing.length} documents differ, as ${first}: ${left.get(first)} / ${right.get(first)}`
}

/**
 * Returns every leaf as one line of text: members ordered by name, ancestry, and attachments by type and content,
 * because each side may store attachments in its own way.
 */
export async function contentsOf(database: ReadableDatabase, leaves: Leaves): Promise<Map<string, string>> {
  const wanted = [...leaves].flatMap(([id, revs]) => revs.map(rev => ({ id, rev })))
  const contents = new Map<string, string>()
  for (let from = 0; from < wanted.length; from += pageSize) {
    const { results } = await database.bulkGet(wanted.slice(from, from + pageSize))
    for (const { id, docs } of results) {
      for (const { ok, error } of docs) {
        if (ok === undefined) throw new Error(`${id}: ${JSON.stringify(error)}`)
        contents.set(`${id} ${ok._rev}`, canonical(ok))
      }
    }
  }
  if (contents.size !== wanted.length) throw new Error(`asked for ${wanted.length} revisions, got ${contents.size}`)
  return contents
}

function canonical({ _attachments = {}, ...document }: StoredDocument): string {
  const attachments = Object.entries(_attachments).map(([name, { content_type, data }]) => [name, content_type, data])
    .sort()
  return JSON.stringify([sorted(document), attachments])
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).sort(([a], [b]) => a < b ? -1 : 1).map(([name, member]) => [name, sorted(member)]),
  )
}
