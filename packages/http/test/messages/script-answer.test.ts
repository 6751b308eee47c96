import { expect } from 'chai'
import { MemoryNode, type Answer } from '../memory-node.ts'

describe('an answer as a script', () => {
  let node: MemoryNode
  beforeEach(async () => {
    node = new MemoryNode()
    await node.put('/db')
    await node.put('/db/_security', {})
    await node.put('/db/a', { n: 1 })
    node.configuration.put('chttpd', 'allow_jsonp', 'true')
  })
  afterEach(() => node.stop())

  /** Runs the script, and returns what it calls the function with. */
  function called({ text }: Answer, callback = 'fn'): unknown {
    const calls: unknown[] = []
    expect(text.startsWith(`/* CouchDB */${callback}(`)).to.equal(true)
    expect(text.endsWith(');\n')).to.equal(true)
    new Function(callback.split(/[.[]/, 1)[0]!, text)((value: unknown) => { calls.push(value) })
    expect(calls).to.have.length(1)
    return calls[0]
  }

  it('calls the function that the request names', async () => {
    const answer = await node.get('/db/a?callback=fn', { accept: '*/*' })
    expect(answer.headers['content-type']).to.equal('application/javascript')
    expect(answer.headers['etag']).to.match(/^"1-/)
    expect(called(answer)).to.include({ _id: 'a', n: 1 })
    expect((await node.get('/_uuids?callback=app.answers[3]')).text).to.match(/^\/\* CouchDB \*\/app\.answers\[3\]\(\{/)
    expect(called(await node.get('/?callback=$_1', { authorization: '' }), '$_1')).to.include({ couchdb: 'Welcome' })
    const head = await node.request('HEAD', '/db/a?callback=fn')
    expect([head.status, head.text]).to.deep.equal([200, ''])
  })

  it('is also a list, a feed and an error', async () => {
    expect(called(await node.get('/db/_all_docs?callback=fn'))).to.deep.include({ total_rows: 1, offset: 0 })
    expect(called(await node.get('/db/_changes?callback=fn'))).to.have.property('last_seq')
    const missing = await node.get('/db/b?callback=fn')
    expect(missing.status).to.equal(404)
    expect(called(missing)).to.deep.equal({ error: 'not_found', reason: 'missing' })
    const body = { docs: Array.from({ length: 500 }, (_, index) => ({ _id: `d${index}`, text: 'x'.repeat(300) })) }
    expect((await node.post('/db/_bulk_docs', body)).status).to.equal(201)
    const long = await node.get('/db/_all_docs?include_docs=true&callback=fn')
    expect(long.chunks).to.be.above(1)
    expect((called(long) as { readonly rows: unknown[] }).rows).to.have.length(501)
  })

  it('is JSON while it is not allowed, for other methods and without a name', async () => {
    const plain = async (method: string, target: string): Promise<void> => {
      const { headers, json } = await node.request(method, target, method === 'GET' ? undefined : {})
      expect([headers['content-type'], typeof json]).to.deep.equal(['application/json', 'object'])
    }
    await plain('GET', '/db/a?callback=')
    await plain('PUT', '/db/c?callback=fn')
    await plain('POST', '/db/_find?callback=fn')
    node.configuration.put('chttpd', 'allow_jsonp', 'false')
    await plain('GET', '/db/a?callback=fn')
    await plain('GET', '/db/a?callback=alert(1)')
  })

  it('leaves out attachments and streams of events', async () => {
    const type = { 'content-type': 'application/javascript' }
    await node.put('/db/s/code.js', 'go()', type)
    expect((await node.get('/db/s/code.js?callback=fn')).text).to.equal('go()')
    const events = await node.during(node.get('/db/_changes?feed=eventsource&timeout=10&callback=fn'))
    expect(events.headers['content-type']).to.equal('text/event-stream')
    expect(events.text).not.to.include('fn(')
    const etag = (await node.get('/db/a')).headers['etag']!
    const unchanged = await node.get('/db/a?callback=fn', { 'if-none-match': etag })
    expect([unchanged.status, unchanged.text]).to.deep.equal([304, ''])
  })

  it('calls nothing but a function', async () => {
    const wrong = [
      'alert(1)', 'a;b', 'a b', 'a/**/', '1a', 'a.', '.a', 'a..b', 'a[b]', 'a["b"]', 'a[', 'a\n', 'ä', '<script>',
      'a,b', 'x'.repeat(101),
    ]
    for (const callback of wrong) {
      const { status, json } = await node.get(`/db/a?callback=${encodeURIComponent(callback)}`)
      expect([status, json], callback).to.deep.equal([400, { error: 'bad_request', reason: 'invalid_callback' }])
    }
  })

  it('has nothing that only a user may read when another site asks for it', async () => {
    const login = await node.post('/_session', { name: 'admin', password: 'secret' }, { authorization: '' })
    const cookie = login.headers['set-cookie']!.split(';', 1)[0]!
    const statusOf = async (headers: Record<string, string>): Promise<number> =>
      (await node.get('/db/a?callback=fn', headers)).status
    const other = { 'sec-fetch-site': 'cross-site' }
    const own = { 'sec-fetch-site': 'same-origin' }
    expect(await statusOf({ authorization: '', cookie, ...other })).to.equal(403)
    expect(await statusOf({ authorization: '', cookie, referer: 'https://evil.example/' })).to.equal(403)
    expect(await statusOf({ authorization: '', cookie })).to.equal(403)
    expect(await statusOf({ authorization: '', cookie, ...own })).to.equal(200)
    expect(await statusOf(other), 'Basic credentials').to.equal(403)
    expect(await statusOf({})).to.equal(200)
    expect(await statusOf({ authorization: '', ...other }), 'what everybody may read').to.equal(200)
  })
})
