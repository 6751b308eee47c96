import assert from 'node:assert/strict'
import { readRequestBody, requestObject } from '../../src/design-functions/request-object.ts'
import { readRequest } from '../../src/pipeline/request-target.ts'
import { RequestIdGenerator, UuidGenerator } from '../../src/services/uuid-generator.ts'
import { SharedCalls } from '../../src/services/shared-calls.ts'
import type { Services } from '../../src/services/services.ts'
import { Admission } from '../../src/request/admission.ts'
import { MemoryNode } from '../memory-node.ts'

let node: MemoryNode

/** Returns `req` of a function that the request calls, as the user bob. */
async function reqOf(
  method: string, target: string, headers: Record<string, string> = {}, body?: string,
  http: { readonly documentBytesMax?: number } = {},
): Promise<any> {
  const built = Promise.withResolvers<any>()
  const server = await node.runtime.http.listen({ host: '127.0.0.1', port: 0 }, async exchange => {
    try {
      const { runtime, coordinator } = node
      const options = { ...node.configuration.options.values, ...http }
      const services = {
        runtime, coordinator, options, descriptions: new SharedCalls(), uuids: new UuidGenerator(runtime, options),
        admission: new Admission(options),
      } as unknown as Services
      const request = readRequest(exchange, new RequestIdGenerator(runtime.random).next(), options, 0)
      request.user = { name: 'bob', roles: ['reader'], admin: false }
      request.database = node.control.state()!.databases.get('db')!
      const parts = { id: 'x', body: await readRequestBody(request, services) }
      built.resolve(JSON.parse(await requestObject(parts, request, services)))
    } catch (error) {
      built.reject(error)
    }
    exchange.send(200, {}, '')
  })
  await node.runtime.http.open({ method, target, headers, ...(body !== undefined && { body }) }, server.address.port)
  try {
    return await built.promise
  } finally {
    await server.close(0)
  }
}

describe('req', () => {
  beforeEach(async () => {
    node = new MemoryNode()
    await node.put('/db')
    await node.put('/db/x', {})
    await node.put('/db/_security', { members: { names: ['bob'] } })
  })
  afterEach(() => node.stop())

  it('has the members of CouchDB', async () => {
    const req = await reqOf('GET', '/db/_design/d/_show/f/a%2Fb?q=1', { 'user-agent': 'test', 'x-mine': 'yes' })
    const { info, uuid, ...rest } = req
    assert.deepEqual([info.db_name, info.doc_count], ['db', 1])
    assert.match(uuid, /^[0-9a-f]{32}$/)
    assert.deepEqual(rest, {
      id: 'x', method: 'GET', path: ['db', '_design', 'd', '_show', 'f', 'a/b'],
      requested_path: ['db', '_design', 'd', '_show', 'f', 'a/b'], raw_path: '/db/_design/d/_show/f/a%2Fb?q=1',
      query: { q: '1' }, headers: { 'Host': 'localhost', 'User-Agent': 'test', 'X-Mine': 'yes' },
      body: 'undefined', peer: '127.0.0.1', form: {}, cookie: {}, userCtx: { db: 'db', name: 'bob', roles: ['reader'] },
      secObj: { members: { names: ['bob'] } },
    })
  })

  it('has no credentials, but all other cookies', async () => {
    const { headers, cookie } = await reqOf('GET', '/db/x', {
      authorization: 'Basic eDp5', cookie: 'AuthSession=abc; theme="dark"; a=b=c', 'proxy-authorization': 'Basic eDp5',
      'x-auth-couchdb-token': 'abc',
    })
    assert.deepEqual(Object.keys(headers), ['Host'])
    assert.deepEqual(cookie, { theme: 'dark', a: 'b=c' })
  })

  it('parses the keys of the query as JSON, and leaves other parameters as text', async () => {
    const { query } = await reqOf('GET', '/db/x?key=[1,"a"]&startkey=1&endkey={}&descending=true&limit=5')
    assert.deepEqual(query, { key: [1, 'a'], startkey: 1, endkey: {}, descending: true, limit: '5' })
    await assert.rejects(reqOf('GET', '/db/x?key=a'), { status: 400, reason: 'invalid UTF-8 JSON' })
  })

  it('has the text of the body, and the fields of a form', async () => {
    const type = { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' }
    const form = await reqOf('POST', '/db/x', type, 'a=1&b=two+words&c=%C3%A9&__proto__=p')
    assert.equal(form.body, 'a=1&b=two+words&c=%C3%A9&__proto__=p')
    assert.deepEqual(Object.entries(form.form), [['a', '1'], ['b', 'two words'], ['c', 'é'], ['__proto__', 'p']])
    const json = await reqOf('POST', '/db/x', { 'content-type': 'application/json' }, '{"a": 1}')
    assert.deepEqual([json.body, json.form], ['{"a": 1}', {}])
    assert.equal((await reqOf('POST', '/db/x', {}, '')).body, '')
    await assert.rejects(reqOf('POST', '/db/x', type, 'a=%zz'), { status: 400 })
  })

  it('has U+FFFD for bytes of the query and of a form that are not UTF-8', async () => {
    const { query } = await reqOf('GET', '/db/x?a=%ff&b=1+%c3%a9%C3&%fe=c&d=%F0%9F%98%80')
    assert.deepEqual(query, { a: '\ufffd', b: '1 é\ufffd', '\ufffd': 'c', d: '😀' })
    const { form } = await reqOf('POST', '/db/x', { 'content-type': 'application/x-www-form-urlencoded' }, 'a=x%ffé')
    assert.deepEqual(form, { a: 'x\ufffdé' })
    await assert.rejects(reqOf('GET', '/db/x?key="%ff"'), { status: 400, reason: 'invalid UTF-8 JSON' })
  })

  it('has the path that the client sent when the request was rewritten', async () => {
    const original = { 'x-couchdb-requested-path': '/db/a%20b?c' }
    const { path, requested_path: requested } = await reqOf('GET', '/db/y', original)
    assert.deepEqual([path, requested], [['db', 'y'], ['db', 'a b']])
  })

  it('is not built for a body that is larger than a document may be', async () => {
    await assert.rejects(
      reqOf('POST', '/db/x', { 'content-length': '11' }, 'x'.repeat(11), { documentBytesMax: 10 }),
      { status: 413, error: 'too_large', message: /couchdb\/max_document_size/ },
    )
  })
})
