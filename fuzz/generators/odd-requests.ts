/** Requests to every route of the API, with odd segments, parameters, headers and bodies. */
import fc from 'fast-check'
import { databaseResources, databaseRoot, serverResources } from '../../packages/http/src/route-table.ts'
import type { FuzzRequest } from '../fuzzed-node.ts'
import { bodyExamples } from './body-examples.ts'
import { jsonText, oddValue } from './odd-json.ts'
import { bookmarks, sinceTokens } from './positions.ts'
import { changed, oddHeader, oddText } from './odd-text.ts'
import { goodHeaders, headerValues } from './odd-headers.ts'

export interface Route { readonly name: string; readonly pattern: string; readonly methods: readonly string[] }

/** The routes of the API, with the database `db` where they need one. */
export const routes: readonly Route[] = [
  ...Object.entries(serverResources()).map(([pattern, { name, allow }]) => routeOf(name, pattern, allow)),
  ...Object.entries(databaseResources()).map(([pattern, { name, allow }]) => routeOf(name, `/db${pattern}`, allow)),
  routeOf('database', '/db', databaseRoot().allow), routeOf('rewrite', '/db/_design/d/_rewrite/{path...}',
    'GET,POST,PUT'),
]

function routeOf(name: string, pattern: string, allow: string): Route {
  return { name, pattern, methods: allow === '*' ? ['GET', 'POST'] : allow.split(',').map(method => method.trim()) }
}

/** Names that exist in the prepared database, by the name of a route's parameter. */
const knownNames: Readonly<Record<string, readonly string[]>> = {
  id: ['a', 'b', 'with', '_design/d', '_local/l'], name: ['d', 'l', 'missing'], view: ['v', 'r', 'lib'],
  node: ['_local'],
  function: ['f', 'g'], attachment: ['text.txt', 'binary'], design: ['d', '_design/d'], db: ['db'],
  section: ['couchdb'],
  key: ['uuid', 'max_document_size'], partition: ['p'], type: ['json'], path: ['a', 'v', '_all_docs'],
}

/** Percent-encodes a segment, and leaves some odd characters as they are. */
function encoded(text: string): string {
  return text.replace(/[^\w.~!$&'()*+,;=:@%"<>{}[\]|^`-]/g, character =>
    [...Buffer.from(character)].map(byte => `%${byte.toString(16).padStart(2, '0')}`).join(''))
}

function segment(parameter: string): fc.Arbitrary<string> {
  const known = fc.constantFrom(...knownNames[parameter] ?? ['a'])
  return fc.oneof({ weight: 5, arbitrary: known }, { weight: 2, arbitrary: oddText }).map(encoded)
}

function pathOf(pattern: string): fc.Arbitrary<string> {
  const parts = pattern.split('/').slice(1)
    .map(part => part.startsWith('{') ? segment(part.replace(/[{}.]/g, '')) : fc.constant(part))
  return fc.tuple(...parts).map(texts => `/${texts.join('/')}`)
}

/** Parameters of all endpoints; the values are those that some endpoint accepts. */
const parameters: Readonly<Record<string, readonly string[]>> = {
  rev: ['1-a', '1-967a00dff5e02add41819138abb3284d'], revs: ['true'], revs_info: ['true'], open_revs: ['all',
    '["1-a"]'],
  atts_since: ['["1-a"]'], attachments: ['true'], att_encoding_info: ['true'], conflicts: ['true'], meta: ['true'],
  deleted_conflicts: ['true'], local_seq: ['true'], latest: ['true'], new_edits: ['false'], batch: ['ok'], r: ['1'],
  w: ['1'], q: ['1'], n: ['1'], key: ['"a"', '1', '{}'], keys: ['["a","b"]'], startkey: ['"a"'], end_key: ['"z"'],
  startkey_docid: ['a'], end_key_doc_id: ['b'], inclusive_end: ['false'], descending: ['true'], skip: ['1'],
  limit: ['0', '2'], include_docs: ['true'], update_seq: ['true'], reduce: ['true', 'false'], group: ['true'],
  group_level: ['1'], stale: ['ok'], stable: ['true'], update: ['lazy'], sorted: ['false'], partition: ['p'],
  feed: ['normal', 'longpoll', 'continuous', 'eventsource'], since: ['now', '0', '1-AQAA'], style: ['all_docs'],
  heartbeat: ['1000'], timeout: ['10'], seq_interval: ['2'], filter: ['_doc_ids', '_view', '_selector', '_design',
    'd/f'],
  view: ['d/v'], doc_ids: ['["a"]'], selector: ['{}'], bookmark: ['nil'], count: ['1'], next: ['/x'], fail: ['/y'],
  raw: ['true'], dry_run: ['true'], format: ['json'], partitioned: ['true'], basic: ['true'], all: ['true'],
  'last-event-id': ['0'], 'time': ['0'], 'feature': ['x'],
}

const since = sinceTokens.map(token => ['since', token] as const)
const bookmark = bookmarks.map(text => ['bookmark', text] as const)
const parameter = fc.constantFrom(...Object.keys(parameters)).chain(name => fc.tuple(
  fc.constant(name),
  fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(...parameters[name]!) },
    { weight: 2, arbitrary: oddText }, { weight: 1, arbitrary: changed(fc.constantFrom(...parameters[name]!)) },
    { weight: 1, arbitrary: oddValue.map(value => JSON.stringify(value)) },
  ),
))

const odd = fc.tuple(oddText, oddText)
const query = fc.array(fc.oneof({ weight: 10, arbitrary: parameter }, { weight: 1, arbitrary: odd }, {
  weight: 1, arbitrary: fc.oneof(since, bookmark),
}), { maxLength: 4 })
  .map(pairs => pairs.map(([name, value]) => `${encoded(name)}=${encoded(value)}`).join('&'))

const method = (route: Route): fc.Arbitrary<string> => fc.oneof(
  { weight: 20, arbitrary: fc.constantFrom(...route.methods) },
  { weight: 1, arbitrary: fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'HEAD', 'COPY', 'OPTIONS', 'PATCH',
    'TRACE') },
)

const headers: fc.Arbitrary<Record<string, string>> = fc.tuple(
  fc.array(fc.constantFrom(...Object.keys(headerValues)).chain(name => fc.tuple(
    fc.constant(name),
    fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom(...headerValues[name]!) },
      { weight: 1, arbitrary: changed(fc.constantFrom(...headerValues[name]!)).map(inHeader) },
      { weight: 1, arbitrary: oddHeader },
    ),
  )), { maxLength: 2 }),
  fc.constantFrom(...goodHeaders),
).map(([odds, good]) => ({ ...good, ...Object.fromEntries(odds) }))

function inHeader(text: string): string {
  return Buffer.from(text).toString('latin1').replace(/[^\t\x20-\x7e\x80-\xff]/g, '')
}

/** Requests to one of the routes. */
export function requestsTo(chosen: readonly Route[]): fc.Arbitrary<FuzzRequest> {
  return fc.constantFrom(...chosen).chain(route => {
    const body = route.methods.some(name => name === 'POST' || name === 'PUT')
      ? fc.oneof({ weight: 9, arbitrary: jsonText(bodyExamples[route.name] ?? [{}]) }, {
        weight: 1, arbitrary: fc.constant(undefined) })
      : fc.constant(undefined)
    return fc.record({ method: method(route), path: pathOf(route.pattern), query, headers, body }, {
      noNullPrototype: true,
    }).map(({ method: verb, path, query: search, headers: sent, body: text }): FuzzRequest => ({
      method: verb, target: search === '' ? path : `${path}?${search}`, headers: sent,
      ...(text !== undefined && { body: text }),
    }))
  })
}
