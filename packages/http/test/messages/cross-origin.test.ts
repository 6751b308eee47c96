import { expect } from 'chai'
import { checkCrossOriginHost, crossOriginDeclarations } from '../../src/settings/cross-origin-options.ts'
import { MemoryNode } from '../memory-node.ts'

const expose = [
  'content-type', 'cache-control', 'accept-ranges', 'etag', 'server',
  'x-couch-request-id', 'x-couch-update-newrev', 'x-couchdb-body-time',
].join(', ')

describe('cross-origin requests', () => {
  let node: MemoryNode
  beforeEach(async () => {
    node = new MemoryNode()
    await node.put('/db')
    node.configuration.put('chttpd', 'enable_cors', 'true')
    node.configuration.put('cors', 'origins', 'http://a.example, https://b.example:8080')
  })
  afterEach(() => node.stop())
  const from = (origin: string) => ({ origin })
  const preflight = (target: string, headers: Record<string, string>) => node.request('OPTIONS', target, undefined, {
    'authorization': '', 'origin': 'http://a.example', 'access-control-request-method': 'PUT', ...headers,
  })

  it('change nothing while CORS is off', async () => {
    node.configuration.put('chttpd', 'enable_cors', 'false')
    expect((await node.get('/_up', from('http://a.example'))).headers).not.to.have.property(
      'access-control-allow-origin',
    )
    expect((await preflight('/', {})).status).to.equal(405)
  })

  it('are answered with the headers that browsers need, errors too', async () => {
    for (const target of ['/_up', '/db/none', '/none']) {
      const { headers } = await node.get(target, from('http://a.example'))
      expect(headers).to.include({
        'access-control-allow-origin': 'http://a.example', 'access-control-expose-headers': expose, 'vary': 'Origin',
      })
    }
    const list = await node.get('/db/_all_docs', from('https://b.example:8080'))
    expect(list.headers['access-control-allow-origin']).to.equal('https://b.example:8080')
    const minimal = { ...from('http://a.example'), prefer: 'return=minimal' }
    expect((await node.put('/db/x', {}, minimal)).headers).to.include.keys(
      'access-control-allow-origin',
    )
  })

  it('get the plain answer from origins that are not listed', async () => {
    for (const origin of ['http://evil.example', 'https://a.example', 'http://a.example:81']) {
      expect((await node.get('/_up', from(origin))).headers).not.to.have.property('access-control-allow-origin')
      expect((await preflight('/', { origin })).status).to.equal(405)
    }
  })

  it('have answers that caches keep apart by their origin, also without one that is allowed', async () => {
    await node.put('/db/doc', {})
    const etag = (await node.get('/db/doc')).headers['etag']!
    for (const origins of ['http://a.example', '*']) {
      node.configuration.put('cors', 'origins', origins)
      const requests: readonly Record<string, string>[] = [{}, from('http://evil.example'), { 'if-none-match': etag }]
      for (const headers of requests) {
        expect((await node.get('/db/doc', headers)).headers['vary']).to.equal('Origin')
        expect((await node.get('/db/none', headers)).headers['vary']).to.equal('Origin')
      }
      expect((await preflight('/db/doc', { origin: 'http://evil.example' })).headers['vary']).to.equal('Origin')
    }
    node.configuration.put('chttpd', 'enable_cors', 'false')
    expect((await node.get('/db/doc')).headers['vary']).to.equal(undefined)
  })

  it('come from the same origin whether it names the default port of its scheme or not', async () => {
    node.configuration.put('cors', 'origins', 'http://a.example:80, https://b.example, https://c.example:80')
    const allowed = async (origin: string): Promise<string | undefined> =>
      (await node.get('/_up', from(origin))).headers['access-control-allow-origin']
    for (const origin of [
      'http://a.example', 'http://a.example:80', 'https://b.example', 'https://b.example:443', 'https://c.example:80',
    ]) {
      expect(await allowed(origin)).to.equal(origin)
    }
    for (const origin of ['https://a.example:80', 'http://b.example:443', 'https://c.example', 'http://c.example']) {
      expect(await allowed(origin), origin).to.equal(undefined)
    }
  })

  it('are preceded by preflights that need no credentials and no database', async () => {
    const allowed = await preflight('/none/doc', { 'access-control-request-headers': 'content-type, Authorization' })
    expect([allowed.status, allowed.text, allowed.headers['content-type']]).to.deep.equal([204, '', undefined])
    expect(allowed.headers).to.include({
      'access-control-allow-origin': 'http://a.example', 'access-control-max-age': '600',
      'access-control-allow-headers': 'content-type, Authorization',
      'access-control-allow-methods': 'CONNECT, COPY, DELETE, GET, HEAD, OPTIONS, POST, PUT, TRACE',
    })
    expect((await preflight('/', { authorization: 'Basic d3Jvbmc6d3Jvbmc=' })).status).to.equal(204)
  })

  it('are ordinary OPTIONS requests when method or header are not allowed', async () => {
    const refusals: readonly Record<string, string>[] = [
      { 'access-control-request-headers': 'x-mine' }, { 'access-control-request-method': 'PATCH' },
      { 'access-control-request-method': '' }, { 'access-control-request-method': 'put' },
    ]
    for (const headers of refusals) {
      const refused = await preflight('/', headers)
      expect([refused.status, refused.headers['allow'], refused.headers['access-control-allow-origin']]).to.deep.equal([
        405, 'GET,HEAD', 'http://a.example',
      ])
    }
    node.configuration.put('cors', 'headers', 'x-mine')
    expect((await preflight('/', { 'access-control-request-headers': 'X-Mine' })).status).to.equal(204)
  })

  it('get the lists of the configuration in the form of CouchDB', async () => {
    node.configuration.put('cors', 'methods', 'PUT,get ,, POST')
    node.configuration.put('cors', 'exposed_headers', 'X-Mine,ETag')
    expect((await preflight('/', {})).headers['access-control-allow-methods']).to.equal('PUT, get, POST')
    expect((await preflight('/', { 'access-control-request-method': 'GET' })).status).to.equal(405)
    const redirect = await node.get('/db/_design%2Fd', from('http://a.example'))
    expect([redirect.headers['content-type'], redirect.headers['access-control-expose-headers']]).to.deep.equal([
      undefined, 'content-type, x-mine, etag',
    ])
  })

  it('need origins that browsers can send, as each other text is refused with its mistake', () => {
    const { parse } = crossOriginDeclarations.crossOriginOrigins
    for (const given of [
      '*', 'null', 'HTTPS://App.example', 'http://localhost:3000', 'http://[::1]:8080', 'http://a_b.example:8080',
      'moz-extension://0ab1-2c', 'capacitor://localhost', 'app://obsidian.md', 'file://',
      'https://xn--bcher-kva.example',
    ]) {
      expect(parse(given)).to.deep.equal([given.toLowerCase()])
    }
    expect(parse(' http://a.example ,, http://b.example')).to.deep.equal(['http://a.example', 'http://b.example'])
    expect(parse('')).to.deep.equal([])
    for (const given of [
      'https://app.example/', 'https://app.example/x', 'app.example', '//app.example', 'https:app.example', 'http://',
      'http://a.example http://b.example', 'https://*.example', 'https://bücher.example', 'https://u:p@app.example',
      'https://app.example?x', 'https://app.example:port', '**', 'http://::1', 'https:\\\\app.example',
    ]) {
      expect(() => parse(`http://a.example, ${given}`), given).to.throw(
        `${given} is not an origin, which browsers send as scheme, host and port, without a path: write `
        + 'https://app.example.org or http://localhost:8080, or * for every origin',
      )
    }
    expect(() => checkCrossOriginHost('origins', 'https://app.example/')).to.throw('is not an origin')
  })

  it('carry credentials only for listed origins', async () => {
    node.configuration.put('cors', 'credentials', 'true')
    const listed = (await node.get('/_up', from('http://a.example'))).headers
    expect(listed['access-control-allow-credentials']).to.equal('true')
    node.configuration.put('cors', 'origins', '*')
    const any = (await node.get('/_up', from('http://any.example'))).headers
    expect([any['access-control-allow-origin'], any['access-control-allow-credentials']]).to.deep.equal([
      'http://any.example', undefined,
    ])
  })

  it('carry credentials for null where it is listed, which pages of every site can have as their origin', async () => {
    node.configuration.put('cors', 'credentials', 'true')
    const headers = async (): Promise<unknown> => {
      const answer = await node.get('/_up', from('null'))
      return [answer.headers['access-control-allow-origin'], answer.headers['access-control-allow-credentials']]
    }
    expect(await headers()).to.deep.equal([undefined, undefined])
    node.configuration.put('cors', 'origins', 'http://a.example, null')
    expect(await headers()).to.deep.equal(['null', 'true'])
  })

  it('follow the options of the host, and those of all hosts where it has none', async () => {
    node.configuration.put('cors', 'max_age', '50')
    node.configuration.put('cors:App.example', 'origins', 'http://app.example')
    node.configuration.put('cors:App.example', 'credentials', 'true')
    const at = async (host: string, origin: string): Promise<string | undefined> =>
      (await node.get('/_up', { host, origin })).headers['access-control-allow-origin']
    for (const host of ['app.example', 'APP.example:5984', 'app.example.', 'app.example.:5984', 'app.example:']) {
      expect(await at(host, 'http://app.example')).to.equal('http://app.example')
      expect(await at(host, 'http://a.example'), 'the list of the host takes the place of the other one')
        .to.equal(undefined)
    }
    expect(await at('other.example', 'http://app.example')).to.equal(undefined)
    expect(await at('other.example', 'http://a.example')).to.equal('http://a.example')
    const { headers } = await preflight('/db', { host: 'app.example', origin: 'http://app.example' })
    expect(headers).to.include({ 'access-control-allow-credentials': 'true', 'access-control-max-age': '50' })
    node.configuration.put('cors:App.example', 'origins', '')
    expect(await at('app.example', 'http://a.example'), 'an empty value is none').to.equal('http://a.example')
  })

  it('with credentials leave the SameSite attribute out of the session cookies of their host', async () => {
    node.configuration.put('cors:app.example', 'credentials', 'true')
    const login = async (host: string): Promise<string> =>
      String((await node.request('DELETE', '/_session', undefined, { host })).headers['set-cookie'])
    expect(await login('app.example')).not.to.match(/SameSite/)
    expect(await login('other.example')).to.match(/SameSite=Lax/)
  })
})
