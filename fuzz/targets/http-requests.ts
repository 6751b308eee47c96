/** Requests to the routes of the API of a complete node. */
import fc from 'fast-check'
import { FuzzedNode, type FuzzAnswer, type FuzzRequest } from '../fuzzed-node.ts'
import { target, type FuzzTarget } from '../fuzz-target.ts'
import { designDocuments } from '../generators/body-examples.ts'
import { requestsTo, routes, type Route } from '../generators/odd-requests.ts'

const requestsMax = 8
const attachment = { content_type: 'text/plain', data: Buffer.from('hello, hello').toString('base64') }
const fixtures = {
  docs: [
    { _id: 'a', x: 1, tags: ['a', 'b'], s: 'text' }, { _id: 'b', x: { y: null } },
    { _id: 'with', _attachments: { 'text.txt': attachment, 'binary': { ...attachment, content_type: 'image/png' } } },
    { _id: '_design/d', ...designDocuments[0], ...designDocuments[1], views: {
      v: { map: 'function (doc) { emit(doc._id, doc.x) }' },
      r: { map: 'function (doc) { emit([doc.x, doc._id], 1) }', reduce: '_stats' }, lib: { m: 'exports.a = 1' },
    } },
  ],
}

/** Starts a node with the database `db`, gives it to `use`, and stops it. */
export async function withNode(use: (node: FuzzedNode) => Promise<void>): Promise<void> {
  const node = await FuzzedNode.start()
  await node.prepare('PUT', '/db?q=1')
  await node.prepare('POST', '/db/_bulk_docs', fixtures)
  await node.prepare('PUT', '/db/_local/l', { x: 1 })
  await use(node)
  if (node.errors.length > 0) throw new Error(`the log has errors: ${node.errors.join('\n')}`)
  const alive = await node.send({ method: 'GET', target: '/_up', headers: {} })
  if (alive.status !== 200) throw new Error(`the node does not serve requests any more: ${alive.text}`)
  await node.stop()
}

/** Mistakes of a client or of a design document for which CouchDB, and therefore this API, has status 500. */
const mistakes = new Set([
  'compilation_error', 'render_error', 'timeout', 'unknown_query_language', 'invalid_value', 'unnamed_error',
  'TypeError', 'ReferenceError', 'SyntaxError', 'builtin_reduce_error', 'os_process_error', 'query_server_error',
  'rewrite_error', 'invalid_list_index_params',
])
const functionRoutes = /\/_(?:show|list|update|rewrite)(?:\/|$)/

/** @throws Error unless the response is a success, or an error of the client with its reason */
export function checkAnswer(request: FuzzRequest, { status, text }: FuzzAnswer): void {
  const shown = `${status} ${text.slice(0, 300)}`
  if (status < 400 || functionRoutes.test(request.target.split('?', 1)[0]!)) return
  if (isHead(request) && (status < 500 || status === 501)) return
  const { error, reason } = errorOf(text) ?? {}
  if (typeof error !== 'string' || typeof reason !== 'string') throw new Error(`an error without a reason: ${shown}`)
  if (status < 500 || status === 501 || mistakes.has(error)) return
  throw new Error(`a server error: ${shown}`)
}

function isHead({ method, headers }: FuzzRequest): boolean {
  return method === 'HEAD' || (method === 'POST' && headers['x-http-method-override'] === 'HEAD')
}

function errorOf(text: string): { readonly error?: unknown; readonly reason?: unknown } | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function httpTarget(name: string, property: string, chosen: (route: Route) => boolean): FuzzTarget {
  const requests = requestsTo(routes.filter(chosen))
  return target({
    name, property, runsInTests: 20, inputs: fc.array(requests, { minLength: 1, maxLength: requestsMax }),
    check: sent => withNode(async node => {
      for (const request of sent) checkAnswer(request, await node.send(request))
    }),
  })
}

const queryRoutes = /^(?:find|explain|aggregate|index|partition-(?:find|explain|aggregate))$/
const rowRoutes = /^(?:all-docs|design-docs|local-docs|view|list|partition|changes|db-updates|all-databases|databases-)/
const designRoutes = /^(?:design|show|update|rewrite)/
const refusals = 'is answered, with a reason when it is refused, and never with an error of the server'

export const httpTargets: readonly FuzzTarget[] = [
  httpTarget('http-server', `Every request to an endpoint of the server ${refusals}.`, ({ pattern }) =>
    !pattern.startsWith('/db')),
  httpTarget('http-documents', `Every request that reads or writes documents ${refusals}.`, ({ name, pattern }) =>
    pattern.startsWith('/db') && ![queryRoutes, rowRoutes, designRoutes].some(group => group.test(name))),
  httpTarget('http-rows', `Every request for rows and changes ${refusals}.`, ({ name }) => rowRoutes.test(name)),
  httpTarget('http-queries', `Every query by selector ${refusals}.`, ({ name }) => queryRoutes.test(name)),
  // Validation functions and filters run when documents are written and changes are read.
  httpTarget('http-design', `Every design document, and every request to its functions, ${refusals}.`, ({ name }) =>
    designRoutes.test(name) || ['view', 'list', 'document', 'bulk-docs', 'changes'].includes(name)),
]
