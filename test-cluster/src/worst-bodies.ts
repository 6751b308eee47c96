/** Request bodies that are as expensive as possible for their size. */
import { gzipSync } from 'node:zlib'

export interface WorstBody {
  readonly name: string
  readonly method: string
  /** Path below the database. */
  readonly path: string
  readonly body: () => Uint8Array
  readonly headers?: Readonly<Record<string, string>>
}

const megabyte = 1_000_000

/** Returns copies of `unit`, separated by commas, as many as fit into `bytes` bytes. */
function list(unit: string, bytes: number): string {
  return `${unit},`.repeat(Math.floor(bytes / (unit.length + 1))).slice(0, -1)
}

function numbered(count: number, text: (index: number) => string): string {
  return Array.from({ length: count }, (_, index) => text(index)).join()
}

function bulk(name: string, docs: () => string): WorstBody {
  return { name, method: 'POST', path: '/_bulk_docs', body: () => Buffer.from(`{"docs":[${docs()}]}`) }
}

/** Returns a document with its path of revisions. No two of the `documents` documents have a hash in common. */
function withAncestors(document: number, documents: number, revisions: number): string {
  const ids = numbered(revisions, revision =>
    `"${(revision * documents + document).toString(16).padStart(32, '0')}"`)
  return `{"_id":"r${document}","_revisions":{"start":${revisions},"ids":[${ids}]}}`
}

function compressed({ name, method, path, body }: WorstBody, packed: string): WorstBody {
  return {
    name: `${name}, gzip (${packed})`, method, path, body: () => gzipSync(body(), { level: 9 }),
    headers: { 'content-encoding': 'gzip' },
  }
}

function post(name: string, path: string, body: () => string): WorstBody {
  return { name, method: 'POST', path, body: () => Buffer.from(body()) }
}

/** Writes a document with conflicting branches that have no common revision. */
function branches(name: string, id: string, count: number, depth: number): WorstBody {
  const hash = (branch: number, ancestor: number): string => (branch * depth + ancestor).toString(16).padStart(32, '0')
  return post(name, '/_bulk_docs', () => `{"new_edits":false,"docs":[${numbered(count, branch =>
    `{"_id":"${id}","_revisions":{"start":${depth},"ids":[${
      numbered(depth, ancestor => `"${hash(branch, ancestor)}"`)}]}}`)}]}`)
}

function document(name: string, body: () => string): WorstBody {
  return post(name, '', body)
}

/** Bodies that once stopped a node from responding. */
export const foundBodies: readonly WorstBody[] = [
  bulk('_bulk_docs, 200,000 empty documents (0.6 MB)', () => list('{}', 0.6 * megabyte)),
  bulk('_bulk_docs, empty documents (9 MB)', () => list('{}', 9 * megabyte)),
  bulk('_bulk_docs, empty documents (27 MB)', () => list('{}', 27 * megabyte)),
  compressed(bulk('_bulk_docs, empty documents (127 MiB)', () => list('{}', 133 * megabyte)), '129 KB'),
  compressed(bulk('_bulk_docs, 100,000 empty documents', () => list('{}', 0.3 * megabyte)), '343 bytes'),
  bulk('_bulk_docs, [[[... (8 MB)', () => '['.repeat(8 * megabyte)),
]

/** The most expensive bodies that the API accepts. */
export const acceptedBodies: readonly WorstBody[] = [
  bulk('_bulk_docs, 50,000 empty documents', () => list('{}', 150_000)),
  bulk('_bulk_docs, 50,000 edits of one document', () => list('{"_id":"a"}', 599_999)),
  bulk(
    '_bulk_docs, 14 documents of 2,600,000 objects',
    () => list(`{"a":[${list('{}', 7.9 * megabyte)}]}`, 112 * megabyte),
  ),
  post(
    '_bulk_docs, 5,000 documents of 100 revisions each', '/_bulk_docs',
    () => `{"new_edits":false,"docs":[${numbered(5000, document => withAncestors(document, 5000, 100))}]}`,
  ),
  bulk(
    '_bulk_docs, 1,000 attachments',
    () => numbered(1000, id => `{"_id":"attached${id}","_attachments":{"a":{"data":"${'QUJD'.repeat(250)}"}}}`),
  ),
  document('document of 2,600,000 objects (8 MB)', () => `{"a":[${list('{}', 7.9 * megabyte)}]}`),
  document('document of 870,000 names (8 MB)', () => `{${numbered(870_000, name => `"${name.toString(36)}":0`)}}`),
  document(
    'document of nested lists (8 MB)', () => `{"a":[${list(`${'['.repeat(900)}${']'.repeat(900)}`, 7.9 * megabyte)}]}`,
  ),
  document('document of escapes (8 MB)', () => `{"a":"${'\\u0041'.repeat(1.3 * megabyte)}"}`),
  document('document of white space (8 MB)', () => `{"a":[${list(' 0 ', 7.9 * megabyte)}]}`),
  post('_bulk_get of 50,000', '/_bulk_get', () => `{"docs":[${list('{"id":"a"}', 549_999)}]}`),
  post('_revs_diff of 50,000', '/_revs_diff', () => `{${numbered(50_000, id => `"d${id}":["1-a"]`)}}`),
  post(
    '_missing_revs of one document and 50,000 revisions', '/_missing_revs',
    () => `{"a":[${numbered(50_000, revision => `"1-${revision.toString(16)}"`)}]}`,
  ),
  post('_purge of 2,000', '/_purge', () => `{${numbered(2000, id => `"d${id}":["1-a"]`)}}`),
  post('_all_docs, 200,000 keys', '/_all_docs', () => `{"keys":[${numbered(200_000, id => `"d${id}"`)}]}`),
  post('_all_docs/queries of 100,000', '/_all_docs/queries', () => `{"queries":[${list('{"limit":0}', 1_199_999)}]}`),
  post('_bulk_docs, a document with 480,000 ancestors', '/_bulk_docs', () =>
    `{"new_edits":false,"docs":[{"_id":"old","_revisions":{"start":600000,"ids":[${
      numbered(480_000, id => `"${id.toString(16).padStart(32, '0')}"`)}]}}]}`),
  branches('_bulk_docs, a document with 50,000 branches', 'wide', 50_000, 1),
  branches('_bulk_docs, a document with 200 branches of 1,000 revisions', 'long', 200, 1000),
  branches('_bulk_docs, a document with 1,000 branches of 1,000 revisions', 'longer', 1000, 1000),
  bulk('_bulk_docs, an attachment of 10 MB with many line breaks', () =>
    `{"_id":"lines","_attachments":{"a":{"data":"${'QUJD\\n'.repeat(3.3 * megabyte)}"}}}`),
  post('_changes, selector of 300 patterns that are slow to compile', '/_changes?filter=_selector', () =>
    `{"selector":{"$or":[${numbered(300, id => `{"a":{"$regex":"(?i)${id}${'\\\\W'.repeat(400)}"}}`)}]}}`),
  post(
    '_changes, 400,000 ids', '/_changes?filter=_doc_ids', () => `{"doc_ids":[${numbered(400_000, id => `"d${id}"`)}]}`,
  ),
  post(
    '_changes, selector of 100,000 clauses', '/_changes?filter=_selector',
    () => `{"selector":{"$and":[${list('{"a":1}', 799_999)}]}}`,
  ),
  post(
    '_changes, selector of 200 slow patterns', '/_changes?filter=_selector',
    () => `{"selector":{"$or":[${list('{"a":{"$regex":"(x+x+)+y"}}', 5799)}]}}`,
  ),
]
