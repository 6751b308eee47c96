import { gzipSync } from 'node:zlib'
import { expect } from 'chai'
import { basic, MemoryNode } from '../memory-node.ts'

/** Returns a promise and the function that resolves it. */
function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = () => {}
  const opened = new Promise<void>(resolve => { open = resolve })
  return { opened, open: () => open() }
}

describe('overload', () => {
  it('refuses requests above the bound with 503 and Retry-After', async () => {
    const door = gate()
    const node = new MemoryNode({
      http: { concurrentRequestsMax: 2 },
      wrap: coordinator => ({ ...coordinator, openDocument: async () => { await door.opened; return null } }),
    })
    await node.put('/db')
    const waiting = [node.get('/db/a'), node.get('/db/b')]
    const refused = await node.get('/')
    expect([refused.status, refused.json.error, refused.headers['retry-after']]).to.deep.equal([
      503, 'service unavailable', '1',
    ])
    expect((await node.get('/_up')).status).to.equal(200)
    expect((await node.get('/_upper')).status).to.equal(503)
    door.open()
    expect((await Promise.all(waiting)).map(answer => answer.status)).to.deep.equal([404, 404])
    expect((await node.get('/_up')).status).to.equal(200)
    await node.stop()
  })

  it('keeps most places for clients that are logged in while others send bodies', async () => {
    const node = new MemoryNode({ http: { concurrentRequestsMax: 4, anonymousBodiesMax: 2 } })
    const rest = gate()
    async function* body(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('{')
      await rest.opened
      yield Buffer.from('"name":"admin","password":"secret"}')
    }
    const login = (): ReturnType<typeof node.post> =>
      node.post('/_session', body(), { authorization: '', 'content-type': 'application/json' })
    const ended = login()
    const waiting = [login(), login()]
    const refused = await ended
    expect([refused.status, refused.headers['retry-after']]).to.deep.equal([503, '1'])
    expect(refused.json.reason).to.contain('request bodies')
    expect((await node.put('/db')).status).to.equal(201)
    expect((await node.put('/db/a', {})).status).to.equal(201)
    rest.open()
    expect((await Promise.all(waiting)).map(answer => answer.status)).to.deep.equal([200, 200])
    expect((await login()).status).to.equal(200)
    await node.stop()
  })

  it('lets others log in while clients of one address send many bodies that do not end', async () => {
    await othersLogIn(['10.0.0.1', '10.0.0.1', '10.0.0.1', '10.0.0.1'], ['10.0.0.2', '10.0.0.3'])
  })

  it('lets others log in while a client with an IPv6 network sends many bodies that do not end', async () => {
    const network = ['2001:db8::1', '2001:db8::2', '2001:db8::3', '2001:db8::4'] as const
    await othersLogIn(network, ['2001:db8:0:1::2', '2001:db8:0:1::3'])
  })

  async function othersLogIn(
    clients: readonly [string, string, string, string], others: readonly [string, string],
  ): Promise<void> {
    const node = new MemoryNode({ http: { anonymousBodiesMax: 4 } })
    const rest = gate()
    async function* unended(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('{')
      await rest.opened
    }
    node.configuration.put('chttpd', 'peer_header', 'X-Forwarded-For')
    const send = (address: string, body: unknown): ReturnType<typeof node.post> => node.post(
      '/_session', body, { 'authorization': '', 'content-type': 'application/json', 'x-forwarded-for': address },
    )
    const other = send(others[1], unended())
    const slow = clients.slice(0, 3).map(address => send(address, unended()))
    const right = { name: 'admin', password: 'secret' }
    expect((await send(others[0], right)).status).to.equal(200)
    expect((await send(clients[3], right)).status).to.equal(200)
    expect((await slow[0]!).status).to.equal(503)
    slow.push(send(clients[0], unended()), send(clients[3], unended()))
    expect((await slow[1]!).status).to.equal(503)
    rest.open()
    const left = await Promise.all([other, ...slow.slice(2)])
    expect(left.map(({ status }) => status), 'bodies that end too early').to.deep.equal([400, 400, 400, 400])
    await node.stop()
  }

  it('keeps half of the places for others while a user sends many bodies that do not end', async () => {
    const node = new MemoryNode({ http: { concurrentRequestsMax: 4 } })
    await node.put('/db')
    const rest = gate()
    async function* unended(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('{')
      await rest.opened
    }
    const slow = Array.from({ length: 4 }, (_, index) => node.put(`/db/d${index}`, unended()))
    expect((await Promise.all(slow.slice(0, 2))).map(({ status }) => status)).to.deep.equal([503, 503])
    expect((await node.put('/db/a', {})).status, 'the oldest one makes room').to.equal(201)
    expect((await slow[2]!).status).to.equal(503)
    expect((await node.get('/db/a')).status).to.equal(200)
    rest.open()
    expect((await slow[3]!).status, 'a body that ends too early').to.equal(400)
    await node.stop()
  })

  it('counts bodies only until they have arrived', async () => {
    const door = gate()
    const node = new MemoryNode({
      http: { concurrentRequestsMax: 4 },
      wrap: coordinator => ({
        ...coordinator,
        updateDocuments: async (...call) => { await door.opened; return coordinator.updateDocuments(...call) },
      }),
    })
    await node.put('/db')
    async function* late(): AsyncGenerator<Uint8Array> {
      await door.opened
      yield Buffer.from('{}')
    }
    const writes = [node.put('/db/late', late())]
    for (const id of ['a', 'b', 'c']) {
      writes.push(node.put(`/db/${id}`, {}))
      await new Promise(resolve => { setImmediate(resolve) })
    }
    door.open()
    expect((await Promise.all(writes)).map(({ status }) => status)).to.deep.equal([201, 201, 201, 201])
    await node.stop()
  })

  it('refuses bodies that do not fit into the memory set aside, and frees it afterwards', async () => {
    const door = gate()
    const node = new MemoryNode({
      http: { bufferedBodyBytesMax: 1500 },
      wrap: coordinator => ({
        ...coordinator,
        updateDocuments: async (...call) => { await door.opened; return coordinator.updateDocuments(...call) },
      }),
    })
    await node.put('/db')
    const first = node.put('/db/a', { text: 'x'.repeat(1000) })
    expect((await node.put('/db/b', { text: 'x'.repeat(1000) })).status).to.equal(503)
    door.open()
    expect((await first).status).to.equal(201)
    expect((await node.put('/db/b', { text: 'x'.repeat(1000) })).status).to.equal(201)
    await node.stop()
  })

  it('leaves memory to others while bodies of one address do not end', async () => {
    await bodiesLeaveMemory(['10.0.0.1', '10.0.0.1', '10.0.0.1'], '10.0.0.2')
  })

  it('leaves memory to others while bodies of one IPv6 network do not end', async () => {
    await bodiesLeaveMemory(['2001:db8::1', '2001:db8::2', '2001:db8::3'], '2001:db8:0:1::1')
  })

  async function bodiesLeaveMemory(clients: readonly [string, string, string], other: string): Promise<void> {
    const node = new MemoryNode({ http: { bufferedBodyBytesMax: 4000 } })
    node.configuration.put('chttpd', 'peer_header', 'X-Forwarded-For')
    await node.put('/db')
    const rest = gate()
    async function* unended(): AsyncGenerator<Uint8Array> {
      yield Buffer.from(`{"text":"${'x'.repeat(1400)}`)
      await rest.opened
    }
    const put = (id: string, address: string, body: unknown): ReturnType<typeof node.put> =>
      node.put(`/db/${id}`, body, { 'content-type': 'application/json', 'x-forwarded-for': address })
    const slow = [put('a', clients[0], unended()), put('b', clients[1], unended())]
    await new Promise(resolve => { setImmediate(resolve) })
    expect((await put('c', clients[2], { text: 'x'.repeat(400) })).status).to.equal(503)
    expect((await put('d', other, { text: 'x'.repeat(400) })).status).to.equal(201)
    rest.open()
    expect((await Promise.all(slow)).map(({ status }) => status)).to.deep.equal([400, 400])
    expect((await put('c', clients[2], { text: 'x'.repeat(3500) })).status, 'alone').to.equal(201)
    await node.stop()
  }

  it('leaves memory to others while feeds with large bodies wait', async () => {
    await feedsLeaveMemory({ bufferedBodyBytesMax: 400_000, parsedBytesMax: 10_000_000 })
    await feedsLeaveMemory({ bufferedBodyBytesMax: 10_000_000, parsedBytesMax: 400_000 })
  })

  async function feedsLeaveMemory(limits: { bufferedBodyBytesMax: number; parsedBytesMax: number }): Promise<void> {
    const node = new MemoryNode({ http: limits })
    node.configuration.put('chttpd', 'peer_header', 'X-Forwarded-For')
    await node.put('/db')
    const follow = async (address: string, left = new AbortController()): Promise<number> => {
      const headers = {
        authorization: basic('admin', 'secret'), 'content-type': 'application/json', 'x-forwarded-for': address,
      }
      const path = '/db/_changes?feed=continuous&heartbeat=60000'
      return (await node.open('POST', path, headers, `{${' '.repeat(130_000)}}`, left.signal)).status
    }
    const first = new AbortController()
    expect([await follow('10.0.0.1', first), await follow('10.0.0.2')]).to.deep.equal([200, 503])
    expect((await node.get('/db/_changes?feed=longpoll&timeout=0')).status).to.equal(200)
    expect((await node.post('/db/_bulk_docs', { docs: [{ text: 'x'.repeat(100_000) }] })).status).to.equal(201)
    first.abort()
    await node.clock.advance(1)
    const second = new AbortController()
    expect(await follow('10.0.0.2', second)).to.equal(200)
    second.abort()
    await node.stop()
  }

  it('refuses bodies whose parsed form does not fit beside those of others, and frees memory afterwards', async () => {
    const door = gate()
    const node = new MemoryNode({
      http: { parsedBytesMax: 30_000 },
      wrap: coordinator => ({
        ...coordinator,
        updateDocuments: async (...call) => { await door.opened; return coordinator.updateDocuments(...call) },
      }),
    })
    await node.put('/db')
    // A body is accepted whatever its size while no other one is held.
    const first = node.post('/db/_bulk_docs', { docs: Array.from({ length: 20 }, () => ({})) })
    const refused = await node.post('/db/_bulk_docs', { docs: [{}, {}] })
    expect([refused.status, refused.headers['retry-after']]).to.deep.equal([503, '1'])
    expect(refused.json.reason).to.contain('large bodies')
    door.open()
    expect((await first).status).to.equal(201)
    expect((await node.post('/db/_bulk_docs', { docs: [{}, {}] })).status).to.equal(201)
    await node.stop()
  })

  it('names the limit that a costly body goes beyond', async () => {
    const node = new MemoryNode({ http: { jsonValuesMax: 1200 } })
    await node.put('/db')
    await node.configuration.set('couchdb', 'max_bulk_docs_count', '3', { persist: false })
    await node.configuration.set('couchdb', 'max_bulk_get_count', '2', { persist: false })
    const filler = `"${'x'.repeat(64 * 1024)}"`
    for (const [path, body, reason] of [
      ['_bulk_docs', { docs: [{}, {}, {}, {}] }, 'more than 3 documents, which is couchdb/max_bulk_docs_count'],
      ['_bulk_get', { docs: [{}, {}, {}] }, '3 documents, couchdb/max_bulk_get_count is 2'],
      ['_revs_diff', { a: [], b: [], c: [] }, '3 documents, couchdb/max_bulk_get_count is 2'],
      ['_missing_revs', { a: [], b: [], c: [] }, '3 documents, couchdb/max_bulk_get_count is 2'],
      ['_purge', { a: [], b: [], c: [] }, '3 documents, couchdb/max_bulk_get_count is 2'],
      [
        '_all_docs', `{"keys":[${'1,'.repeat(1300)}${filler}]}`,
        'more than 1200 values and names of members, which is limits/json_values',
      ],
      ['_changes?filter=_doc_ids', `{"doc_ids":[${'"a",'.repeat(1300)}${filler}]}`, 'limits/json_values'],
      ['_all_docs', `{"keys":${'['.repeat(100_000)}`, 'nested deeper than 1000 levels'],
    ] as const) {
      const answer = await node.post(`/db/${path}`, body, { 'content-type': 'application/json' })
      expect(answer.status, path).to.equal(reason.startsWith('nested') ? 400 : 413)
      expect(answer.json.reason, path).to.contain(reason)
    }
    expect((await node.post('/db/_bulk_docs', { docs: [{}, {}, {}] })).status).to.equal(201)
    await node.stop()
  })

  it('refuses gzip with a high compression ratio', async () => {
    const node = new MemoryNode()
    await node.put('/db')
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
    const packed = (text: string): Uint8Array => gzipSync(text)
    const bomb = packed(`{"docs":[${'{},'.repeat(5_000_000)}{}]}`)
    const refused = await node.post('/db/_bulk_docs', bomb, headers)
    expect(refused.status).to.equal(413)
    expect(refused.json.reason).to.contain(
      `${bomb.length} bytes of gzip become more than 100 times as many, which is limits/gzip_ratio`,
    )
    // Bodies with the ratio of ordinary documents are accepted, and small bodies with any ratio.
    const ordinary = JSON.stringify({
      docs: Array.from(
        { length: 20_000 },
        (_, index) => ({ number: index, text: `the ${index * 7919 % 10_007}th of them`, kind: 'ordinary document' }),
      ),
    })
    expect((await node.post('/db/_bulk_docs', packed(ordinary), headers)).status).to.equal(201)
    expect((await node.put('/db/a', packed(`{"a":"${'x'.repeat(3_500_000)}"}`), headers)).status).to.equal(201)
    await node.stop()
  })

  it('refuses large answers while slow clients have not taken others', async () => {
    const door = gate()
    const node = new MemoryNode({ http: { bufferedBodyBytesMax: 50_000 } })
    await node.put('/db')
    await node.put('/db/large', { text: 'x'.repeat(40_000) })
    await node.put('/db/small', { text: 'x' })
    const statuses: number[] = []
    const read = (delivery: Promise<void> | undefined): Promise<void> => new Promise(resolve => node.api.handler({
      method: 'GET', target: '/db/large', headers: { authorization: basic('admin', 'secret') },
      remoteAddress: '127.0.0.1', encrypted: false, isRefused: false, bodyPace: null,
      signal: new AbortController().signal, headersSent: false, delivery,
      readBody: async () => new Uint8Array(),
      body: (async function* () {})(),
      send: status => { statuses.push(status); resolve() },
      stream: () => { throw new Error('not used') },
    }))
    await read(door.opened)
    const closed: unknown[] = []
    node.runtime.http.endStalled = count => { closed.push(count); return true }
    const refused = await node.get('/db/large')
    expect([refused.status, refused.headers['retry-after']]).to.deep.equal([503, '1'])
    expect(closed, 'clients that do not read').to.deep.equal([1])
    expect((await node.get('/db/small')).status).to.equal(200)
    const written = await node.post('/db/_bulk_docs', { docs: Array.from({ length: 300 }, () => ({})) })
    expect([written.status, written.text.length > 16_384], 'what was written is said').to.deep.equal([201, true])
    door.open()
    await door.opened
    expect((await node.get('/db/large')).status).to.equal(200)
    expect(statuses).to.deep.equal([200])
    await node.stop()
  })

  it('stops after the running requests and the batched writes have ended', async () => {
    const door = gate()
    const reached = gate()
    let started = 0
    let written = 0
    const node = new MemoryNode({
      wrap: coordinator => ({
        ...coordinator,
        updateDocuments: async (...call) => {
          if (++started === 2) reached.open()
          await door.opened
          written++
          return coordinator.updateDocuments(...call)
        },
      }),
    })
    await node.put('/db')
    expect((await node.put('/db/log?batch=ok', {})).status).to.equal(202)
    const running = node.put('/db/doc', {})
    await reached.opened
    const stopping = node.stop()
    expect((await node.get('/_up')).status).to.equal(503)
    expect(written).to.equal(0)
    door.open()
    await stopping
    expect(written).to.equal(2)
    expect((await running).status).to.equal(201)
    expect(node.clock.pendingTimers).to.equal(0)
  })

  it('awaits a batched write once the bound is reached', async () => {
    const door = gate()
    const node = new MemoryNode({
      http: { batchedDocumentsMax: 1 },
      wrap: coordinator => ({
        ...coordinator,
        updateDocuments: async (...call) => { await door.opened; return coordinator.updateDocuments(...call) },
      }),
    })
    await node.put('/db')
    expect((await node.put('/db/one?batch=ok', {})).status).to.equal(202)
    let answered = false
    const second = node.put('/db/two?batch=ok', {}).then(answer => { answered = true; return answer })
    await node.get('/_up')
    expect(answered).to.equal(false)
    door.open()
    expect((await second).status).to.equal(202)
    await node.stop()
  })

  it('awaits a batched write that is too large to be kept beside the others', async () => {
    const door = gate()
    const node = new MemoryNode({
      http: { batchedBytesMax: 100 },
      wrap: coordinator => ({
        ...coordinator,
        updateDocuments: async (...call) => { await door.opened; return coordinator.updateDocuments(...call) },
      }),
    })
    await node.put('/db')
    expect((await node.put('/db/one?batch=ok', { text: 'x'.repeat(60) })).status).to.equal(202)
    let answered = false
    const second = node.put('/db/two?batch=ok', { text: 'x'.repeat(60) }).then(answer => {
      answered = true
      return answer
    })
    await node.get('/_up')
    expect(answered).to.equal(false)
    door.open()
    expect((await second).status).to.equal(202)
    expect((await node.put('/db/three?batch=ok', { text: 'x'.repeat(60) })).status).to.equal(202)
    await node.stop()
  })

  it('logs a batched write that conflicts', async () => {
    const node = new MemoryNode()
    await node.put('/db')
    await node.put('/db/doc', {})
    expect((await node.put('/db/doc?batch=ok', { late: true })).status).to.equal(202)
    await node.stop()
    expect(node.log.lines.some(({ level, fields }) =>
      level === 'warn' && fields['reason'] === 'Document update conflict.')).to.equal(true)
  })
})
