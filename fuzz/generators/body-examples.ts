/** Valid bodies of the routes, by the name of the route. The fuzzer changes them. */
import { encodeBookmark } from '@sectional/core'

const revision = '1-967a00dff5e02add41819138abb3284d'
const inline = { 'text.txt': { content_type: 'text/plain', data: 'aGVsbG8=', revpos: 1, digest: 'md5-x' } }
const documents: readonly unknown[] = [
  { _id: 'n', x: 1 }, { _id: 'a', _rev: revision, x: 2 }, { _id: 'b', _rev: revision, _deleted: true },
  { _id: 'n', _attachments: inline }, { _id: 'n', _attachments: { f: { stub: true, length: 1, digest: 'md5-x' } } },
  { _id: 'n', _attachments: { f: { follows: true, length: 3, content_type: 'a/b', encoding: 'gzip' } } },
  { _id: 'n', _rev: '2-b', _revisions: { start: 2, ids: ['b', 'a'] } },
]

export const selectors: readonly unknown[] = [
  {}, { x: 1 }, { x: { $gt: 1, $lt: 5 } }, { $and: [{ x: 1 }, { 'y.z': { $exists: true } }] },
  { $or: [{ x: { $in: [1, 2] } }, { x: { $nin: [3] } }] }, { $nor: [{ x: { $ne: 1 } }] },
  { $not: { x: { $type: 'string' } } },
  { tags: { $all: ['a', ['b']] } }, { tags: { $elemMatch: { $eq: 'a', $gt: 'A' } } }, { tags: { $allMatch: { a: 1 } } },
  { o: { $keyMapMatch: { $eq: 'a' } } }, { tags: { $size: 2 } }, { x: { $mod: [3, 1] } },
  { s: { $regex: '^a(b|c)*$' } },
  { s: { $beginsWith: 'a' } }, { 'a\\.b': 1 }, { x: { $not: { $regex: '(?i)x' } } }, { '': 1 },
]

const finds = selectors.flatMap(selector => [
  { selector }, {
    selector, fields: ['_id', 'x.y'], sort: [{ x: 'asc' }], limit: 3, skip: 1, bookmark: 'nil', use_index: ['d', 'i'],
    r: 1, conflicts: true, update: true, stable: true, execution_stats: true, advice: true, sort_in_memory: true,
  },
])
const pages = [{ id: 'a' }, { id: '\uffff', key: [1] }, { id: '', key: [{}, null] }].map(position => ({
  selector: { x: { $gt: null } }, bookmark: encodeBookmark(position), limit: 1,
}))
const aggregates = [{
  selector: { x: { $gt: 0 } }, group_by: ['genre'],
  aggregates: { total: { $sum: 'x' }, n: { $count: true }, low: { $min: 'x' }, mean: { $avg: 'x' } },
}]
const rows = [
  { keys: ['a', 'b', 1] }, { queries: [{ key: 'a' }, { startkey: 'a', limit: 2, group_level: 1 }] },
  { start_key: ['a'], end_key: ['a', {}], descending: false, skip: 0, include_docs: true }, { reduce: false },
]

export const designDocuments: readonly Record<string, unknown>[] = [
  {
    language: 'javascript', views: { v: { map: 'function (doc) { emit(doc._id, doc.x) }', reduce: '_sum' } },
    filters: { f: 'function (doc, req) { return true }' }, options: { partitioned: false, include_design: true },
  },
  {
    views: { lib: { m: 'exports.a = 1' },
      w: { map: 'function (doc) { emit([doc._id, require("views/lib/m").a], null) }' } },
    validate_doc_update: 'function (newDoc, oldDoc, userCtx, secObj) { if (newDoc.bad) throw {forbidden: "bad"} }',
    shows: { f: 'function (doc, req) { return {code: 200, headers: {"X-A": "b"}, body: "x"} }' },
    lists: { f: 'function (head, req) { var row; while (row = getRow()) send(toJSON(row)) }' },
    updates: { f: 'function (doc, req) { return [{_id: "u"}, "done"] }' },
    rewrites: [{ from: '/x/:a', to: '../../:a', method: 'GET', query: { key: ':a' } }, { from: '*', to: '*' }],
    autoupdate: false,
  },
  { language: 'query', views: { i: { map: { fields: { x: 'asc' }, partial_filter_selector: {} }, reduce: '_count',
    options: { def: { fields: ['x'] } } } } },
  { rewrites: 'function (req) { return {path: "../../a"} }', _attachments: inline },
]

export const bodyExamples: Readonly<Record<string, readonly unknown[]>> = {
  'database': documents,
  'document': documents,
  'design-document': designDocuments,
  'local-document': [{ _id: '_local/l', x: 1 }, { _rev: '0-1', x: 2 }],
  'attachment': ['content'],
  'bulk-docs': [
    { docs: documents }, { docs: documents, new_edits: false }, { docs: [{ _id: 'a' }, { _id: 'a' }, {}], w: 1 },
    { docs: designDocuments.map(design => ({ _id: '_design/e', ...design })) },
  ],
  'bulk-get': [{ docs: [{ id: 'a', rev: revision, atts_since: ['1-a'] }, { id: 'missing' }] }],
  'revs-diff': [{ a: ['1-a', revision], missing: ['1-b'] }],
  'missing-revs': [{ a: ['1-a', revision], missing: ['1-b'] }],
  'purge': [{ a: [revision], missing: ['1-b'] }],
  'security': [{ admins: { names: ['x'], roles: [] }, members: { names: [], roles: ['r'] } },
    { readers: { names: ['a'] } }],
  'revs-limit': [10], 'purged-infos-limit': [10], 'auto-purge': [{ deleted_document_ttl: '3_mon' }],
  'find': [...finds, ...pages], 'explain': finds, 'partition-find': finds, 'partition-explain': finds,
  'aggregate': aggregates, 'partition-aggregate': aggregates,
  'index': [
    { index: { fields: ['x', { y: 'asc' }], partial_filter_selector: { x: 1 } }, ddoc: 'i', name: 'n', type: 'json' },
    { index: { fields: ['x'] }, partitioned: false }, { docids: ['_design/d', '_design/i'], w: 1 },
  ],
  'all-docs': rows, 'design-docs': rows, 'local-docs': rows, 'view': rows, 'list': rows, 'partition-view': rows,
  'partition-all-docs': rows,
  'all-docs-queries': rows, 'design-docs-queries': rows, 'local-docs-queries': rows, 'view-queries': rows,
  'partition-view-queries': rows, 'partition-all-docs-queries': rows,
  'changes': [{ doc_ids: ['a', 'b'] }, ...selectors.map(selector => ({ selector, fields: ['x'] }))],
  'databases-info': [{ keys: ['db', 'missing'] }],
  'session': [{ name: 'admin', password: 'wrong', token: '123456' }, { username: 'x', password: '' }],
  'node-config': ['value', 'true', '42', `-pbkdf2-${'aa'.repeat(20)},bb,1`],
  'cluster-setup': [{ action: 'finish_cluster' }, { action: 'add_node', host: 'x', port: 1, username: 'a',
    password: 'b' }],
  'show': [{ x: 1 }], 'update': [{ x: 1 }], 'rewrite': [{ x: 1 }],
}
