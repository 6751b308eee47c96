import { gzipSync } from 'node:zlib'
import { expect } from 'chai'
import { ApiError } from '@sectional/core'
import { databaseResources } from '../../src/route-table.ts'
import { adminAuthorization, MemoryNode } from '../memory-node.ts'

/** Names of the routes of databases whose POST requests read. */
const reading = [
  'aggregate', 'all-docs', 'all-docs-queries', 'bulk-get', 'changes', 'design-docs', 'design-docs-queries', 'explain',
  'find', 'list', 'local-docs', 'local-docs-queries', 'missing-revs', 'partition-aggregate', 'partition-all-docs',
  'partition-all-docs-queries', 'partition-explain', 'partition-find', 'partition-view', 'partition-view-queries',
  'revs-diff', 'show', 'view', 'view-queries',
]
/** Names of those that start maintenance, which changes no documents. */
const maintaining = [
  'compact', 'ensure-full-commit', 'nouveau-cleanup', 'search-cleanup', 'sync-shards', 'view-cleanup',
]

describe('the path of the web interface', () => {
  it('is missing for everybody, since there is none', async () => {
    const node = new MemoryNode()
    for (const path of ['/_utils', '/_utils/', '/_utils/session.html?return=/']) {
      for (const authorization of ['', adminAuthorization]) {
        const answer = await node.get(path, { authorization })
        expect([answer.status, answer.json], path).to.deep.equal([404, { error: 'not_found', reason: 'missing' }])
        expect((await node.request('HEAD', path, undefined, { authorization })).status).to.equal(404)
      }
      for (const method of ['PUT', 'POST']) {
        expect((await node.request(method, path, '', { authorization: '' })).status, method).to.equal(401)
      }
    }
    await node.stop()
  })
})

describe('request pipeline', () => {
  let node: MemoryNode
  beforeEach(async () => {
    node = new MemoryNode()
    await node.put('/db?q=2')
  })
  afterEach(() => node.stop())

  it('answers JSON as text or as JSON, as the client asks', async () => {
    expect((await node.get('/', { accept: '' })).headers['content-type']).to.equal('text/plain;charset=utf-8')
    expect((await node.get('/', { accept: '*/*' })).headers['content-type']).to.equal('text/plain;charset=utf-8')
    expect((await node.get('/', { accept: 'text/html, text/*;q=0.5,*/*;q=0.1' })).headers['content-type']).to.equal(
      'text/plain;charset=utf-8',
    )
    for (const accept of [
      'application/xml', 'text/html, application/xml', 'image/png', 'text/html, application/json;q=0.1',
    ]) {
      expect((await node.get('/', { accept })).headers['content-type'], accept).to.equal('application/json')
    }
    const preferred = await node.get('/', { accept: 'text/html, application/json;q=0.9' })
    expect(preferred.headers['content-type']).to.equal('application/json')
    expect((await node.get('/nosuch', { accept: '' })).headers['content-type']).to.equal('text/plain;charset=utf-8')
    node.configuration.put('chttpd', 'json_default_type', 'application/json')
    expect((await node.get('/', { accept: '' })).headers['content-type']).to.equal('application/json')
  })

  it('refuses more than one Host and more than one Authorization, which the listener joins', async () => {
    const refusal = async (headers: Record<string, string>): Promise<unknown> => {
      const { status, json } = await node.get('/', headers)
      return [status, json.reason]
    }
    node.configuration.put('chttpd', 'authentication_handlers', 'jwt, default')
    expect(await refusal({ host: 'a, b' })).to.deep.equal([400, 'Only one Host is allowed'])
    expect(await refusal({ authorization: `${adminAuthorization}, ${adminAuthorization}` }))
      .to.deep.equal([400, 'Authorization header has invalid base64 value'])
    expect(await refusal({ authorization: `Bearer a.b.c, ${adminAuthorization}` }))
      .to.deep.equal([400, 'Malformed token'])
  })

  it('refuses transfer codings that it does not decode, so that no encoded body is stored', async () => {
    await node.put('/db')
    const put = async (coding: string): Promise<unknown> => {
      const { status, json } = await node.request('PUT', '/db/doc/a', 'text', {
        'content-type': 'text/plain', 'transfer-encoding': coding,
      })
      return [status, json.reason]
    }
    for (const coding of ['gzip, chunked', 'identity, chunked', 'x, chunked', 'chunked, chunked', 'chunked;q=1']) {
      expect(await put(coding), coding).to.deep.equal([
        400, `The transfer coding ${coding} is not supported: send chunked, and compress with Content-Encoding.`,
      ])
    }
    expect((await node.get('/db/doc')).status).to.equal(404)
    expect(await put('Chunked')).to.deep.equal([201, undefined])
  })

  it('answers with 500 when neither an answer nor its error can be sent', async () => {
    const broken = new MemoryNode({ http: { jsonDefaultType: 'text/\u20ac' } })
    const { status, json } = await broken.get('/', { accept: '' })
    expect([status, json.error]).to.deep.equal([500, 'unknown_error'])
    await broken.stop()
  })

  it('repeats an acceptable request id and makes one otherwise, on errors too', async () => {
    const answered = async (path: string, sent?: string): Promise<string | undefined> => {
      const { headers } = await node.get(path, sent === undefined ? {} : { 'x-couch-request-id': sent })
      return headers['x-couch-request-id']
    }
    expect(await answered('/nosuch', 'trace-42_a')).to.equal('trace-42_a')
    expect(await answered('/_up', 'no spaces!')).to.match(/^[0-9a-f]{10}$/)
    expect(await answered('/%zz')).to.match(/^[0-9a-f]{10}$/)
  })

  it('lets a POST name another method, and nothing else', async () => {
    expect((await node.post('/db/x', { a: 1 }, { 'x-http-method-override': 'PUT' })).status).to.equal(201)
    expect((await node.post('/db/x', undefined, { 'x-http-method-override': 'GET' })).json.a).to.equal(1)
    expect((await node.get('/db/x', { 'x-http-method-override': 'DELETE' })).status).to.equal(200)
    for (const ignored of ['NONSENSE', 'put', 'Put', 'PATCH', 'OPTIONS', 'PUT,GET']) {
      expect((await node.post('/db/x', {}, { 'x-http-method-override': ignored })).json.reason).to.equal(
        'Referer header required.',
      )
    }
  })

  it('runs HEAD as GET without a body', async () => {
    const head = await node.request('HEAD', '/_up')
    expect([head.status, head.text]).to.deep.equal([200, ''])
    expect((await node.request('HEAD', '/db/_all_docs')).headers).to.include.keys('etag', 'content-type')
    expect((await node.request('HEAD', '/_uuids')).status).to.equal(200)
    expect((await node.request('HEAD', '/db/_bulk_docs')).status).to.equal(405)
  })

  it('answers 405 with Allow and the methods in the known order', async () => {
    const refused = await node.request('PATCH', '/db/doc')
    expect([refused.status, refused.headers['allow']]).to.deep.equal([405, 'DELETE,GET,HEAD,POST,PUT,COPY'])
    expect(refused.json).to.deep.equal({
      error: 'method_not_allowed', reason: 'Only DELETE,GET,HEAD,POST,PUT,COPY allowed',
    })
    expect((await node.request('OPTIONS', '/', undefined, { authorization: '' })).status).to.equal(405)
    expect((await node.request('constructor', '/')).status).to.equal(405)
  })

  it('refuses bad escapes in path and query', async () => {
    for (const target of ['/%', '/db/a%2', '/db?x=%', '/db/_all_docs?startkey=%zz']) {
      const refused = await node.get(target)
      expect([refused.status, refused.json]).to.deep.equal([
        400, { error: 'bad_request', reason: 'invalid_url_encoding' },
      ])
    }
  })

  it('finds endpoints under escaped names and doubled slashes', async () => {
    expect((await node.get('//_%75p/')).json.status).to.equal('ok')
  })

  it('tells unknown paths apart as CouchDB does', async () => {
    expect((await node.get('/_nosuch')).json).to.deep.equal({ error: 'not_found', reason: 'Database does not exist.' })
    expect((await node.get('/_nosuch', { authorization: '' })).status).to.equal(401)
    expect((await node.put('/_nosuch')).json.error).to.equal('illegal_database_name')
    expect((await node.get('/db/_nosuch')).json.reason).to.equal('missing')
    expect((await node.get('/db/_purged_infos_limit/x')).json.reason).to.equal('missing')
    expect((await node.get('/_node/_local/nosuch')).json.reason).to.equal('missing')
    expect((await node.get('/nosuch/_all_docs', { authorization: '' })).json.reason).to.equal(
      'Database does not exist.',
    )
  })

  it('says that the database is missing when it was deleted during the request and no replica answers', async () => {
    for (const name of ['internal_server_error', 'service_unavailable', 'timeout'] as const) {
      await node.put('/db')
      node.coordinator.listDocuments = async () => {
        await node.delete('/db')
        throw new ApiError(name)
      }
      const { status, json } = await node.get('/db/_all_docs')
      expect([status, json.reason], name).to.deep.equal([404, 'Database does not exist.'])
    }
  })

  it('keeps only the listed headers for Prefer: return=minimal', async () => {
    const minimal = await node.put('/db/a', {}, { prefer: 'return=minimal' })
    expect(Object.keys(minimal.headers).sort()).to.deep.equal([
      'cache-control', 'content-length', 'content-type', 'etag', 'server',
    ])
    expect((await node.put('/db/b', {}, { prefer: 'return=representation' })).headers).to.include.keys('location')
  })

  it('builds Location from the forwarded host and protocol', async () => {
    expect((await node.put('/db/a', {})).headers['location']).to.equal('http://node.example:5984/db/a')
    const forwarded = await node.put('/db/b c', {}, {
      'x-forwarded-host': 'couch.example', 'x-forwarded-proto': 'https',
    })
    expect(forwarded.headers['location']).to.equal('https://couch.example/db/b%20c')
    expect((await node.put('/db/d', {}, { 'x-forwarded-ssl': 'on' })).headers['location']).to.equal(
      'https://node.example:5984/db/d',
    )
  })

  it('accepts gzip bodies, bounded after inflation, and no other coding', async () => {
    const gzip = { 'content-encoding': 'gzip' }
    expect((await node.put('/db/z', gzipSync('{"hello":"gzip"}'), gzip)).status).to.equal(201)
    expect((await node.put('/db/y', '{}', gzip)).json.reason).to.equal('Request body is not properly gzipped.')
    expect((await node.put('/db/y', '{}', { 'content-encoding': 'br' })).json).to.deep.equal({
      error: 'bad_content_type', reason: 'br is not a supported content encoding.',
    })
    node.configuration.put('chttpd', 'max_http_request_size', '1000')
    expect((await node.put('/db/bomb', gzipSync(`{"a":"${'x'.repeat(100_000)}"}`), gzip)).status).to.equal(413)
  })

  it('inflates small gzip that becomes large chunk by chunk, and not while other requests wait', async () => {
    const { compression } = node.runtime
    const gunzip = compression.gunzip.bind(compression)
    let streams = 0
    compression.gunzip = chunks => {
      streams++
      return gunzip(chunks)
    }
    for (const [id, characters, streamed] of [['small', 1000, 0], ['large', 1_000_000, 1]] as const) {
      const body = gzipSync(`{"a":"${'x'.repeat(characters)}"}`)
      expect((await node.put(`/db/${id}`, body, { 'content-encoding': 'gzip' })).status, id).to.equal(201)
      expect(streams, id).to.equal(streamed)
    }
  })

  it('reads bodies of unknown length up to the limit', async () => {
    expect((await node.put('/db/c', pieces())).status).to.equal(201)
    node.configuration.put('chttpd', 'max_http_request_size', '1000')
    expect((await node.put('/db/d', pieces())).status).to.equal(413)
    expect((await node.put('/db/e', { text: 'x'.repeat(5000) })).json.error).to.equal('too_large')
  })

  it('bounds bodies by max_http_request_size also where an endpoint has a limit of its own', async () => {
    node.configuration.put('chttpd', 'max_http_request_size', '20')
    for (const [method, path, body] of [
      ['PUT', '/db/_security', { members: { names: ['anna'] } }],
      ['POST', '/_session', { name: 'anna', password: 'secret' }],
      ['POST', '/db/_find', { selector: { text: 'abc' } }],
    ] as const) {
      const { status, json } = await node.request(method, path, body)
      expect([status, json.error], path).to.deep.equal([413, 'too_large'])
      expect(json.reason, path).to.include('chttpd/max_http_request_size is 20')
    }
    expect((await node.put('/db/_security', {})).status).to.equal(200)
  })

  it('answers 414 for addresses over the configured length', async () => {
    node.configuration.put('chttpd', 'max_uri_length', '128')
    expect((await node.get(`/db/${'x'.repeat(124)}`)).status).to.equal(404)
    expect((await node.get(`/db/${'x'.repeat(125)}`)).json).to.deep.equal({
      error: 'too_long', reason: 'the request uri is too long',
    })
  })

  it('serves no data while the node has no cluster, and says why', async () => {
    node.control.unavailable = 'This node was not admitted to a cluster yet.'
    const refused = await node.get('/db')
    expect([refused.status, refused.json.reason, refused.headers['retry-after']]).to.deep.equal([
      503, 'This node was not admitted to a cluster yet.', '1',
    ])
    expect((await node.get('/_up')).status).to.equal(404)
    expect((await node.get('/')).status).to.equal(200)
  })

  it('serves only reads while the node must not accept writes, and gives the reason', async () => {
    await node.put('/db/a', { v: 1 })
    await node.put('/parts?partitioned=true')
    node.control.writesRefused = 'This node has met another cluster.'
    const writes = [
      ['PUT', '/db/a', '{}'], ['DELETE', '/db/a', ''], ['POST', '/db', '{}'], ['POST', '/db/_bulk_docs', '{"docs":[]}'],
      ['POST', '/db/_purge', '{}'], ['POST', '/db/_index', '{"index":{"fields":["a"]}}'],
      ['POST', '/db/_index/_bulk_delete', '{"docids":["d"]}'], ['DELETE', '/db/_index/d/json/i', ''],
      ['POST', '/parts/_partition/p/_index', '{"index":{"fields":["a"]}}'],
      ['PUT', '/other', ''], ['DELETE', '/db', ''], ['PUT', '/db/_security', '{}'], ['PUT', '/db/_local/x', '{}'],
      ['COPY', '/db/a', ''], ['PUT', '/db/a/file', '"x"'],
    ] as const
    for (const [method, target, body] of writes) {
      const answer = await node.request(method, target, body === '' ? undefined : JSON.parse(body))
      expect([answer.status, answer.json.reason, answer.headers['retry-after']], `${method} ${target}`).to.deep.equal([
        503, 'This node has met another cluster.', '1',
      ])
    }
    expect((await node.get('/db/a')).json.v).to.equal(1)
    expect((await node.post('/db/_revs_diff', { a: ['1-x'] })).status).to.equal(200)
    expect((await node.post('/db/_all_docs', { keys: ['a'] })).status).to.equal(200)
    const up = await node.get('/_up')
    expect([up.status, up.json.reason]).to.deep.equal([404, 'This node has met another cluster.'])
  })

  it('knows of each POST to a database whether it writes', async () => {
    node.control.writesRefused = 'This node has met another cluster.'
    const answered = new Set<string>()
    for (const [pattern, { name, methods }] of Object.entries(databaseResources())) {
      if (methods['POST'] === undefined) continue
      const path = pattern.replace(/\{[^}]*\}/g, 'x')
      const { status, json } = await node.during(node.post(`/db${path}`, {}))
      const isRefused = status === 503 && json.reason === node.control.writesRefused
      const isNotImplemented = status === 501 && json.reason.endsWith('not available in this version.')
      if (!isRefused && !isNotImplemented) answered.add(name)
    }
    expect([...answered].sort(), 'a route that writes belongs in the list of dispatch.ts').to.deep.equal(
      [...reading, ...maintaining].sort(),
    )
  })

  it('finds a database that only the leader knows so far', async () => {
    node.control.late = { ...node.control.state()!.databases.get('db')!, name: 'new' }
    expect((await node.get('/new')).json.db_name).to.equal('new')
  })

  it('ends every JSON body with a newline', async () => {
    for (const target of ['/', '/db', '/db/_all_docs', '/nosuch']) {
      expect((await node.get(target)).text).to.match(/[^\n]\n$/)
    }
  })

  it('hides what went wrong inside, and logs it under the request id', async () => {
    await node.stop()
    node = new MemoryNode({
      wrap: coordinator => ({ ...coordinator, openDocument: () => { throw new Error('disk /secret/path broke') } }),
    })
    await node.put('/db')
    const failed = await node.get('/db/doc', { 'x-couch-request-id': 'trace-1' })
    expect([failed.status, failed.json.error]).to.deep.equal([500, 'unknown_error'])
    expect(failed.text).not.to.contain('/secret/path')
    const line = node.log.lines.find(({ level }) => level === 'error')!
    expect(line.fields['requestId']).to.equal('trace-1')
    expect(String(line.fields['error'])).to.contain('disk /secret/path broke')
  })

  it('never logs credentials or query strings', async () => {
    await node.get('/db/doc?rev=1-secretrevision', {
      authorization: `Basic ${Buffer.from('admin:wrong').toString('base64')}`,
    })
    await node.get('http://admin:wrong@elsewhere/db/other?rev=1-secretrevision')
    await node.get('http://admin:wrong@elsewhere')
    const text = JSON.stringify(node.log.lines)
    expect(text).to.contain('"path":"/db/doc"').and.to.contain('"path":"/db/other"').and.to.contain('"path":"/"')
    for (const secret of ['secretrevision', 'wrong', Buffer.from('admin:wrong').toString('base64')]) {
      expect(text).not.to.contain(secret)
    }
  })

  it('counts requests by route, method and code', async () => {
    await node.get('/db/doc')
    await node.get('/db/doc')
    await node.put('/db/doc', {})
    const samples = await node.runtime.metrics.samples()
    const value = (name: string, ...labels: string[]) =>
      samples.find(sample =>
        sample.name === name && labels.every(label => Object.values(sample.labels).includes(label)))?.value
    expect(value('sectional_http_requests_total', 'document', 'GET', '404')).to.equal(2)
    expect(value('sectional_http_requests_total', 'document', 'PUT', '201')).to.equal(1)
    expect(value('sectional_http_request_seconds_count', 'document')).to.equal(3)
    expect(value('sectional_http_requests_in_flight')).to.equal(0)
  })

  it('counts the status codes that functions choose together, and those of the server alone', async () => {
    const shows = { s: 'function (doc, req) { return { code: Number(req.query.code) } }' }
    await node.put('/db/_design/d', { shows })
    for (const code of [200, 299, 404, 599, 418]) await node.get(`/db/_design/d/_show/s?code=${code}`)
    const samples = await node.runtime.metrics.samples()
    expect(samples.filter(({ name, labels }) => name === 'sectional_http_requests_total' && labels.route === 'show')
      .map(({ labels, value }) => [labels.code, value])).to.deep.equal([['200', 1], ['other', 3], ['404', 1]])
  })
})

async function* pieces(): AsyncGenerator<Uint8Array> {
  yield Buffer.from('{"text":"')
  for (let i = 0; i < 5; i++) yield Buffer.alloc(1000, 'x')
  yield Buffer.from('"}')
}
