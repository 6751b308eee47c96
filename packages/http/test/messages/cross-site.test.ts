import { expect } from 'chai'
import { MemoryNode, type Answer } from '../memory-node.ts'

describe('a request of another site', () => {
  let node: MemoryNode
  let cookie: string
  beforeEach(async () => {
    node = new MemoryNode()
    const login = await node.post('/_session', { name: 'admin', password: 'secret' }, { authorization: '' })
    cookie = login.headers['set-cookie']!.split(';', 1)[0]!
    await node.put('/db')
  })
  afterEach(() => node.stop())

  const evil = { origin: 'https://evil.example' }
  const post = (path: string, headers: Record<string, string>, body = ''): Promise<Answer> =>
    node.post(path, body, { authorization: '', cookie, ...headers })
  const outcome = ({ status, json }: Answer): unknown[] => [status, json.error]
  const reload = '/_node/_local/_config/_reload'
  const changing = ['/_cluster_setup', reload, '/db/_sync_shards', '/db/_view_cleanup']

  it('cannot use a session with what browsers send without asking', async () => {
    for (const path of changing) {
      for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', '']) {
        expect(outcome(await post(path, { ...evil, 'content-type': type })), path).to.deep.equal([403, 'forbidden'])
      }
    }
    const sandboxed = await post('/db/_view_cleanup', { origin: 'null', 'content-type': 'text/plain' })
    expect(sandboxed.status).to.equal(403)
    const fetched = await post('/db/_view_cleanup', { 'sec-fetch-site': 'cross-site' })
    expect(fetched.status).to.equal(403)
    const linked = await post('/db/_view_cleanup', { referer: 'https://evil.example/node.example:5984' })
    expect(linked.status).to.equal(403)
  })

  it('cannot use a session with the type of a form although it does not say where it comes from', async () => {
    for (const path of changing) {
      expect(outcome(await post(path, { 'content-type': 'text/plain;charset=utf-8' })), path)
        .to.deep.equal([415, 'bad_content_type'])
    }
  })

  it('is told from those of pages of this server, of clients without a browser, and of JSON', async () => {
    const accepted: Record<string, string>[] = [
      { 'origin': 'http://node.example:5984', 'content-type': 'text/plain' },
      { 'origin': 'https://db.example', 'x-forwarded-host': 'db.example:443', 'content-type': 'text/plain' },
      { 'sec-fetch-site': 'same-origin', 'origin': 'https://db.example', 'content-type': 'text/plain' },
      { 'referer': 'http://node.example:5984/_utils/', 'content-type': 'text/plain' },
      {},
      { ...evil, 'content-type': 'application/json' },
    ]
    for (const headers of accepted) expect((await post(reload, headers)).status, JSON.stringify(headers)).to.equal(200)
  })

  it('is allowed when the configuration gives its origin credentials', async () => {
    node.configuration.put('chttpd', 'enable_cors', 'true')
    node.configuration.put('cors', 'origins', 'https://evil.example')
    const headers = { ...evil, 'content-type': 'application/json' }
    expect((await post(reload, { ...evil })).status).to.equal(403)
    node.configuration.put('cors', 'credentials', 'true')
    expect((await post(reload, { ...evil })).status).to.equal(200)
    expect((await post(reload, headers)).status).to.equal(200)
    node.configuration.put('cors', 'origins', '*')
    expect((await post(reload, { ...evil })).status).to.equal(403)
  })

  it('cannot use a session to write through a function that rewrites a GET', async () => {
    await node.put('/db/x', { n: 1 })
    const rewrites = '(req) => ({ path: "../../x", method: req.query.method, body: JSON.stringify({ n: 2 }) })'
    await node.put('/db/_design/d', { rewrites })
    const follow = (method: string, headers: Record<string, string>): Promise<Answer> =>
      node.get(`/db/_design/d/_rewrite/link?method=${method}`, { authorization: '', cookie, ...headers })
    const others: Record<string, string>[] = [
      { 'sec-fetch-site': 'cross-site' }, { referer: 'https://evil.example/' }, {},
    ]
    for (const headers of others) {
      expect(outcome(await follow('DELETE', headers)), JSON.stringify(headers)).to.deep.equal([403, 'forbidden'])
      expect(outcome(await follow('PUT', headers)), JSON.stringify(headers)).to.deep.equal([403, 'forbidden'])
      expect((await follow('GET', headers)).json.n).to.equal(1)
    }
    expect((await follow('PUT', { 'sec-fetch-site': 'same-origin' })).status).to.equal(409)
    const basic = async (headers: Record<string, string>): Promise<unknown> =>
      outcome(await node.get('/db/_design/d/_rewrite/link?method=PUT', headers))
    expect(await basic({})).to.deep.equal([409, 'conflict'])
    for (const headers of others.slice(0, 2)) expect(await basic(headers)).to.deep.equal([403, 'forbidden'])
  })

  it('cannot use a session to write through several rewrites, whatever headers the first one sets', async () => {
    await node.put('/db/x', { n: 1 })
    const rewrites = `(req) => req.path.at(-1) === 'end' ? { path: '../../x', method: 'DELETE' }
      : { path: '_rewrite/end', method: req.path.at(-1), headers: JSON.parse(req.query.headers) }`
    await node.put('/db/_design/d', { rewrites })
    await node.put('/db/_design/rules', { rewrites: [{ from: ':method', to: '../d/_rewrite/:method' }] })
    node.configuration.put('vhosts', 'site.example', '/db/_design/rules/_rewrite')
    const forged = [{ 'Sec-Fetch-Site': 'same-origin' }, { Referer: 'http://node.example:5984/' }, {}]
      .map(headers => encodeURIComponent(JSON.stringify(headers)))
    const links = ['GET', 'HEAD', 'POST'].flatMap(method => forged.map(headers => `/${method}?headers=${headers}`))
    const others: Record<string, string>[] = [{ 'sec-fetch-site': 'cross-site' }, { referer: 'https://evil.example/' }]
    for (const link of links) {
      for (const from of others) {
        const sent = [
          await node.get(`/db/_design/d/_rewrite${link}`, { authorization: '', cookie, ...from }),
          await node.get(`/db/_design/rules/_rewrite${link}`, { authorization: '', cookie, ...from }),
          await node.get(link, { authorization: '', cookie, host: 'site.example', ...from }),
        ]
        // The answer to a request that a rewrite has made a HEAD has no body.
        for (const { json, status } of sent) {
          expect(json?.error ?? status, link).to.be.oneOf(['forbidden', 'rewrite_error', 403, 404])
        }
      }
    }
    expect((await node.get('/db/x')).json.n).to.equal(1)
  })

  describe('with the Basic credentials that a browser sends', () => {
    const sent = async (path: string, headers: Record<string, string>): Promise<Answer> =>
      node.post(path, '', headers)
    const types: Record<string, string>[] = [
      'text/plain', 'Text/Plain;charset=UTF-8', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x',
      '',
    ].map(type => ({ 'content-type': type }))
    const foreign: Record<string, string>[] = [
      evil, { origin: 'null' }, { 'sec-fetch-site': 'cross-site' }, { ...evil, 'sec-fetch-site': 'same-site' },
      { origin: 'http://node.example:80' },
    ]

    it('cannot use what browsers send without asking, and says what would help', async () => {
      for (const path of [...changing, '/db/_compact', '/db/x']) {
        for (const headers of types.flatMap(type => foreign.map(from => ({ ...type, ...from })))) {
          expect(outcome(await sent(path, headers)), path + JSON.stringify(headers)).to.deep.equal([403, 'forbidden'])
        }
      }
      const { reason } = (await sent(reload, { ...evil, 'content-type': 'text/plain' })).json
      expect(reason).to.equal('A page of https://evil.example must not use the credentials of a user with Content-Type '
        + 'text/plain. Send Content-Type application/json, or list the origin of the page in cors/origins.')
      expect(node.audited.at(-1)).to.include({ event: 'permission_refused', user: 'admin' })
    })

    it('is told from those of programs, of pages of this server, and of JSON', async () => {
      const accepted: Record<string, string>[] = [
        {}, { 'content-type': 'text/plain' }, { 'content-type': 'application/x-www-form-urlencoded' },
        { 'referer': 'https://evil.example/', 'content-type': 'text/plain' },
        { 'origin': 'http://node.example:5984', 'content-type': 'text/plain' },
        { 'sec-fetch-site': 'none', 'content-type': 'text/plain' },
        { ...evil, 'sec-fetch-site': 'same-origin' },
        { ...evil, 'content-type': 'application/json' },
        { 'sec-fetch-site': 'cross-site', 'content-type': 'application/json;charset=utf-8' },
      ]
      for (const headers of accepted) {
        expect((await sent(reload, headers)).status, JSON.stringify(headers)).to.equal(200)
      }
    })

    it('is allowed when CORS lists its origin itself', async () => {
      node.configuration.put('cors', 'origins', 'https://evil.example')
      expect((await sent(reload, evil)).status).to.equal(403)
      node.configuration.put('chttpd', 'enable_cors', 'true')
      expect((await sent(reload, { ...evil, 'sec-fetch-site': 'cross-site' })).status).to.equal(200)
      node.configuration.put('cors', 'origins', '*')
      expect((await sent(reload, evil)).status).to.equal(403)
      expect((await node.post('/db', { n: 1 }, evil)).status, 'as PouchDB writes').to.equal(201)
      expect((await node.put('/db/d', { n: 1 }, evil)).status).to.equal(201)
    })

    it('cannot use headers that a proxy adds', async () => {
      node.configuration.put('chttpd', 'authentication_handlers', 'proxy')
      node.configuration.put('chttpd_auth', 'proxy_use_secret', 'false')
      const proxied = {
        'authorization': '', 'x-auth-service-username': 'ann', 'x-auth-service-roles': '_admin',
        'content-type': 'text/plain',
      }
      expect((await sent(reload, { ...proxied, ...evil })).status).to.equal(403)
      expect((await sent(reload, proxied)).status).to.equal(200)
    })
  })

  it('may log in and read', async () => {
    const form = { ...evil, 'content-type': 'application/x-www-form-urlencoded' }
    expect((await post('/_session', form, 'name=admin&password=secret')).status).to.equal(200)
    expect((await node.get('/db', { authorization: '', cookie, ...evil })).status).to.equal(200)
    expect((await node.post('/_session', 'name=admin&password=secret', form)).status).to.equal(200)
  })
})
