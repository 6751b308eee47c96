/** Attacks on a running node, as docs/security.md lists them. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import type { Answer } from '../src/http-client.ts'
import { exchangeBytes, headOf, statusesOf, type RawAnswer } from '../src/raw-http.ts'
import { eventually, TestCluster } from '../src/test-cluster.ts'
import { administrator, type TestNode } from '../src/test-node.ts'

const member = 'ann:the password of ann'
const boss = 'bob:the password of bob'
const stranger = 'eve:the password of eve'

describe('attacks on a node', () => {
  let cluster: TestCluster
  let node: TestNode
  before(async () => {
    cluster = await TestCluster.start({ nodes: 1, settings: { 'log/level': 'debug' } })
    node = cluster.node(1)
    await node.http.send('PUT', '/_users')
    for (const credentials of [member, boss, stranger]) {
      const [name, password] = credentials.split(':')
      const json = { name, password, roles: [], type: 'user' }
      expect((await node.http.send('PUT', `/_users/org.couchdb.user:${name}`, { json })).status).to.equal(201)
    }
    expect((await node.http.send('PUT', '/db?q=1')).status).to.equal(201)
    const json = { members: { names: ['ann'] }, admins: { names: ['bob'] } }
    expect((await node.http.send('PUT', '/db/_security', { json })).status).to.equal(200)
    await eventually('the users to log in', 10_000, async () => {
      for (const auth of [member, boss, stranger]) expect((await as(auth, 'GET', '/_session')).status).to.equal(200)
    })
  })
  after(async function () { await cluster.close(this.currentTest?.state === 'failed') })

  const as = (auth: string | null, method: string, path: string, json?: unknown): Promise<Answer> =>
    node.http.send(method, path, { auth, ...(json !== undefined && { json }) })
  const basic = (auth: string): string => `Authorization: Basic ${Buffer.from(auth).toString('base64')}\r\n`
  const raw = (bytes: string): Promise<string> => exchangeBytes(node.http.port, bytes)

  /** Sends one request, and returns the head of its response. */
  async function head(
    method: string, path: string, headers: string, auth: string | null = administrator, body = '',
  ): Promise<RawAnswer> {
    const credentials = auth === null ? '' : basic(auth)
    const length = body === '' ? '' : `Content-Length: ${Buffer.byteLength(body)}\r\n`
    const first = `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n`
    return headOf(await raw(`${first}${credentials}${length}${headers}\r\n${body}`))
  }

  describe('by requests that proxies and the node may split differently', () => {
    const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n'
    const ambiguous: Readonly<Record<string, string>> = {
      'two lengths': 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n',
      'a list of lengths': 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0, 5\r\n\r\n',
      'a length with a sign': 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +0\r\n\r\n',
      'a length and chunks':
        'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      'another coding': 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n',
      'chunks that are not the last coding':
        'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n',
      'a blank before the colon': 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n',
      'a zero in a header': 'POST / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n',
      'lines that end without CR': 'POST / HTTP/1.1\nHost: a\nContent-Length: 0\n\n',
      'a header line that ends without CR': 'POST / HTTP/1.1\r\nHost: a\r\nX: y\nContent-Length: 5\r\n\r\n',
      'a carriage return within a header': 'POST / HTTP/1.1\r\nHost: a\r\nX: y\rContent-Length: 5\r\n\r\n',
      'a chunk that ends without CR':
        'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\na\r\n0\r\n\r\n',
      'a chunk with a sign': 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n\r\n0\r\n\r\n',
      'a chunk of more bytes than a number can count':
        'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000001\r\na\r\n0\r\n\r\n',
    }
    for (const [what, request] of Object.entries(ambiguous)) {
      it(`with ${what}: the connection ends, and nothing behind them is a request`, async () => {
        const received = await raw(request + smuggled)
        expect(received).to.not.include('smuggled')
        const statuses = statusesOf(received)
        expect(statuses.at(-1)).to.equal(400)
        expect(statuses.length).to.be.below(3)
        expect(node.log()).to.not.include('"path":"/smuggled"')
      })
    }

    it('with a folded header: it is one header, or refused', async () => {
      const received = await raw(`GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n Content-Length: 30\r\n\r\n${smuggled}`)
      expect([[400], [200, 404], [200, 401]]).to.deep.include([...statusesOf(received)])
    })
  })

  it('with headers beyond the limit get 431, and others are served', async () => {
    expect((await head('GET', '/', `X: ${'x'.repeat(100_000)}\r\n`)).status).to.equal(431)
    expect((await head('GET', '/', 'X: y\r\n'.repeat(20_000))).status).to.equal(431)
    expect((await head('GET', '/', '__proto__: y\r\nconstructor: z\r\n')).status).to.equal(200)
    expect((await as(null, 'GET', '/')).status).to.equal(200)
  })

  describe('by texts that are sent back', () => {
    const evil = 'x\r\nX-Evil: 1\r\n\r\n<script>'
    const encoded = encodeURIComponent(evil)

    it('cannot add headers to a response', async () => {
      const json = { _attachments: { [evil]: { content_type: `text/html\r\nX-Evil: 1`, data: 'Zg==' } } }
      expect((await as(administrator, 'PUT', `/db/${encoded}`, json)).status).to.equal(201)
      const answers = await Promise.all([
        head('PUT', `/db/${encodeURIComponent(`${evil}2`)}`, '', administrator, '{}'),
        head('GET', `/db/${encoded}/${encoded}`, ''), head('GET', `/db/${encoded}`, ''),
        head('GET', `/db/${encoded}?attachments=true`, 'Accept: multipart/related\r\n'),
        head('COPY', `/db/${encoded}`, `Destination: ${encoded}3\r\n`),
        head('POST', `/_session?next=/${encoded}`, 'Content-Type: application/json\r\n', null, JSON.stringify({
          name: 'admin', password: 'cluster-test',
        })),
        head('GET', `/db/_design%2f${encoded}`, ''), head('GET', `/_all_dbs?x=${encoded}`,
          'X-Couch-Request-ID: a\tb\r\n', null),
      ])
      for (const { headers, status } of answers) {
        expect(headers).to.not.have.property('x-evil')
        expect(status).to.be.below(500)
      }
    })

    it('cannot run as a script of this server, in attachments and in responses of functions', async () => {
      const page = '<script>document.title = "owned"</script>'
      for (const type of ['text/html', 'image/svg+xml', 'text/xml', 'application/xhtml+xml']) {
        const json = { _attachments: { page: { content_type: type, data: Buffer.from(page).toString('base64') } } }
        const id = `page-${type.replace('/', '-')}`
        expect((await as(member, 'PUT', `/db/${id}`, json)).status).to.equal(201)
        const { headers } = await head('GET', `/db/${id}/page`, '', member)
        expect(headers['content-type']).to.equal(type)
        expect(headers['content-security-policy']).to.equal('sandbox')
        expect(headers['x-content-type-options']).to.equal('nosniff')
        for (const range of ['1-5', '1-2,4-5']) {
          const part = await head('GET', `/db/${id}/page`, `Range: bytes=${range}\r\n`, member)
          // Texts are stored compressed, and sent as a whole.
          expect([part.status, part.headers['content-security-policy'], part.headers['x-content-type-options']])
            .to.deep.equal([type.startsWith('text/') ? 200 : 206, 'sandbox', 'nosniff'])
        }
      }
      const source = `() => ({ body: ${JSON.stringify(page)}, headers: { 'Content-Type': 'text/html' } })`
      expect((await as(boss, 'PUT', '/db/_design/page', { shows: { s: source }, rewrites: [{ from: '',
        to: '_show/s' }] }))
        .status).to.equal(201)
      for (const path of ['/db/_design/page/_show/s', '/db/_design/page/_rewrite/']) {
        const { headers } = await head('GET', path, '', member)
        expect(headers['content-type']).to.equal('text/html')
        expect(headers['content-security-policy']).to.equal('sandbox')
        expect(headers['x-content-type-options']).to.equal('nosniff')
      }
      const document = await head('GET', '/db/page-text-html', 'Accept: text/html,*/*;q=0.8\r\n', member)
      expect(document.headers['content-type']).to.match(/^(?:application\/json|text\/plain)/)
    })

    it('cannot redirect a browser to another server', async () => {
      const login = JSON.stringify({ name: 'admin', password: 'cluster-test' })
      const next = ['//evil.example/', '/\\evil.example', '/%0a/evil.example', 'http://evil.example', 'evil.example',
        '\\/evil']
      for (const path of next) {
        const { status, headers } = await head(
          'POST', `/_session?next=${encodeURIComponent(path)}`, 'Content-Type: application/json\r\n', null, login)
        if (status === 400) continue
        expect([status, new URL(headers['location']!).host], path).to.deep.equal([302, 'localhost'])
      }
      for (const path of ['//evil.example/_design%2fx', '/db/_design%2fx', '//db/_design%2f//evil.example']) {
        const { location } = (await head('GET', path, '')).headers
        if (location !== undefined) expect(new URL(location).host, path).to.equal('localhost')
      }
    })
  })

  it('by names with the paths of other files touch no file outside of the data', async () => {
    const before = readdirSync(node.folder).sort()
    const names = ['..%2f..%2fevil', '..', '%2e%2e', '%2e%2e%2fevil', 'a%00b', '%2fevil', 'a%2f..%2f..%2fevil',
      'C:%5cevil']
    for (const name of names) {
      expect((await head('PUT', `/${name}`, '')).status, name).to.be.oneOf([400, 404, 405, 412])
      expect((await head('PUT', `/db/${name}`, '', administrator, '{}')).status, name).to.be.below(500)
      const attached = await head('PUT', `/db/files-${encodeURIComponent(name)}/${name}`, 'Content-Type: a/b\r\n',
        administrator, 'content')
      expect(attached.status, name).to.be.below(500)
      expect((await head('GET', `/_node/_local/_config/${name}/${name}`, '')).status).to.be.oneOf([400, 404])
      expect((await head('GET', `/_node/${name}/_config`, '')).status).to.be.oneOf([400, 404])
    }
    expect(readdirSync(node.folder).sort()).to.deep.equal(before)
    expect(existsSync(join(node.folder, '..', 'evil'))).to.equal(false)
  })

  describe('by a user without rights', () => {
    const forServerAdministrators = [
      'GET /_all_dbs', 'GET /_dbs_info', 'GET /_membership', 'GET /_active_tasks', 'GET /_db_updates',
      'GET /_cluster_setup',
      'POST /_cluster_setup', 'GET /_node/_local/_config', 'PUT /_node/_local/_config/admins/eve',
      'POST /_node/_local/_config/_reload', 'GET /_node/_local/_stats', 'GET /_node/_local/_system',
      'GET /_node/_local/_prometheus', 'GET /_node/_local/_versions', 'GET /_node/_local/_replicas/db', 'PUT /other',
      'DELETE /db', 'GET /_users/_all_docs', 'GET /_users/_changes', 'POST /db/_purge', 'PUT /db/_purged_infos_limit',
      'POST /db/_sync_shards', 'GET /_node/_local', 'GET /_unknown', 'GET /_scheduler/jobs',
    ]
    for (const request of forServerAdministrators) {
      it(`${request} is refused to strangers, members and administrators of a database`, async () => {
        const [method, path] = request.split(' ') as [string, string]
        const body = method === 'GET' || method === 'DELETE' ? undefined : {}
        for (const auth of [null, stranger, member, boss]) {
          const { status, body: answer } = await as(auth, method, path, body)
          expect(status, String(auth)).to.be.oneOf([401, 403])
          expect(answer).to.have.keys('error', 'reason')
        }
      })
    }

    it('only version, readiness, members and the own session are shown to anonymous clients', async () => {
      const open = await Promise.all(['/', '/_up', '/_session', '/_uuids'].map(path => as(null, 'GET', path)))
      expect(open.map(({ status }) => status)).to.deep.equal([200, 200, 200, 200])
      expect(open.map(({ body }) => Object.keys(body).sort())).to.deep.equal([
        ['couchdb', 'features', 'git_sha', 'uuid', 'vendor', 'version'], ['seeds', 'status'], ['info', 'ok', 'userCtx'],
        ['uuids'],
      ])
      expect(Object.keys(open[2]!.body.info).sort()).to.deep.equal(['authentication_db', 'authentication_handlers'])
    })

    it('nothing of a database is readable or writable to others than its members', async () => {
      const requests = [
        'GET /db', 'GET /db/_all_docs', 'GET /db/_changes', 'POST /db/_find', 'POST /db/_bulk_get', 'PUT /db/x',
        'POST /db',
        'POST /db/_bulk_docs', 'GET /db/_security', 'PUT /db/_security', 'GET /db/_design/page', 'POST /db/_revs_diff',
        'GET /db/_design/page/_show/s', 'GET /db/_design/page/_rewrite/', 'GET /db/_local/x', 'GET /db/_shards',
        'POST /db/_compact', 'GET /db/page-text-html/page', 'GET /db/_index', 'POST /db/_explain',
        'POST /db/_aggregate',
      ]
      for (const request of requests) {
        const [method, path] = request.split(' ') as [string, string]
        const body = method === 'GET' ? undefined : {}
        expect((await as(stranger, method, path, body)).status, request).to.be.oneOf([401, 403])
        expect((await as(null, method, path, body)).status, request).to.equal(401)
      }
    })

    it('members cannot change what administrators of a database may', async () => {
      const requests: readonly (readonly [string, string, unknown])[] = [
        ['PUT', '/db/_design/x', {}], ['PUT', '/db/_security', {}], ['PUT', '/db/_revs_limit', 1], ['POST',
          '/db/_compact', {}],
        ['POST', '/db/_view_cleanup', {}], ['POST', '/db/_index', { index: { fields: ['a'] } }], ['PUT',
          '/db/_auto_purge', {}],
        ['DELETE', '/db/_index/_design/x/json/y', undefined],
      ]
      for (const [method, path, json] of requests) {
        expect((await as(member, method, path, json)).status, path).to.be.oneOf([401, 403])
      }
      const rows = await as(member, 'POST', '/db/_bulk_docs', { docs: [{ _id: '_design/x' }, { _id: 'm' }] })
      expect(rows.body.map((row: { error?: string }) => row.error)).to.deep.equal(['forbidden', undefined])
      const replicated = await as(member, 'POST', '/db/_bulk_docs', {
        new_edits: false, docs: [{ _id: '_design/y', _rev: '1-a', views: {} }],
      })
      expect(JSON.stringify(replicated.body)).to.include('forbidden')
      expect((await as(administrator, 'GET', '/db/_design/y')).status).to.equal(404)
    })
  })

  describe('by members of JSON with special names', () => {
    const json = 'Content-Type: application/json\r\n'
    const roles = '{"roles":["_admin"],"names":["eve"],"admins":{"names":["eve"]},"members":{"names":["eve"]}}'
    /** An object with members of one special name, written in two ways. */
    const objects = [`{"__proto__":${roles},"constructor":${roles}}`, `{"\\u005f_proto__":${roles}}`]

    it('gives no roles and no rights', async () => {
      for (const text of objects) {
        const security = `${text.slice(0, -1)},"members":{"names":["ann"]},"admins":{"names":["bob"]}}`
        expect((await head('PUT', '/db/_security', json, boss, security)).status).to.equal(200)
        const requests: readonly (readonly [string, string, string, string | null])[] = [
          ['POST', '/_session', text, null], ['POST', '/db/_find', text, member],
          ['POST', '/db/_find', `{"selector":${text},"fields":["__proto__.x","constructor.y"]}`, member],
          ['PUT', '/db/special', `{"m":${text}}`, member], ['POST', '/db/_bulk_docs', `{"docs":[{"m":${text}}]}`,
            member],
          ['PUT', '/_users/org.couchdb.user:eve', text, stranger], ['POST', '/db/_revs_diff', text, member],
          ['PUT', '/_node/_local/_config/__proto__/isAdmin', '"true"', administrator],
        ]
        for (const [method, path, body, auth] of requests) {
          expect((await head(method, path, json, auth, body)).status, path).to.be.below(500)
        }
      }
      const session = await as(stranger, 'GET', '/_session')
      expect(session.body.userCtx.roles).to.deep.equal([])
      expect((await as(stranger, 'GET', '/_all_dbs')).status).to.equal(401)
      expect((await as(stranger, 'GET', '/db')).status).to.equal(403)
      expect((await as(null, 'GET', '/_session')).body.userCtx).to.deep.equal({ name: null, roles: [] })
    })

    it('is kept like other members of documents', async () => {
      const text = '{"_id":"kept","constructor":2,"toString":"x","m":{"__proto__":{"a":1},"b":[{"__proto__":1}]}}'
      expect((await head('PUT', '/db/kept', 'Content-Type: application/json\r\n', member, text)).status).to.equal(201)
      const { body } = await as(member, 'GET', '/db/kept')
      expect(Object.keys(body)).to.include.members(['constructor', 'toString'])
      expect(JSON.stringify(body.m)).to.equal('{"__proto__":{"a":1},"b":[{"__proto__":1}]}')
      expect((await head('PUT', '/db/top', '', member, '{"__proto__":{"a":1}}')).status).to.equal(400)
    })
  })

  describe('with a stolen cookie', () => {
    const json = 'Content-Type: application/json\r\n'
    const login = async (headers = ''): Promise<{ readonly cookie: string; readonly header: string }> => {
      const body = JSON.stringify({ name: 'ann', password: 'the password of ann' })
      const answer = await head('POST', '/_session', json + headers, null, body)
      const header = answer.headers['set-cookie']!
      return { header, cookie: /AuthSession=[^;]+/.exec(header)![0] }
    }
    const statusWith = async (cookie: string, path = '/db'): Promise<number> =>
      (await head('GET', path, `Cookie: ${cookie}\r\n`, null)).status

    it('have the rights of its user and no others, also after the user has logged out', async () => {
      const { cookie } = await login()
      expect(await statusWith(cookie)).to.equal(200)
      expect(await statusWith(cookie, '/_all_dbs')).to.equal(401)
      expect((await head('DELETE', '/_session', `Cookie: ${cookie}\r\n`, null)).status).to.equal(200)
      expect(await statusWith(cookie)).to.equal(200)
    })

    it('cannot use it after the password was changed, not even to the same one', async () => {
      const { cookie } = await login()
      const user = '/_users/org.couchdb.user:ann'
      const { body } = await as(administrator, 'GET', user)
      const change = async (rev: string, password: string): Promise<Answer> => as(administrator, 'PUT', user, {
        ...body, _rev: rev, password,
      })
      const changed = await change(body._rev, 'another one')
      expect(changed.status).to.equal(201)
      expect(await statusWith(cookie)).to.equal(401)
      expect((await change(changed.body.rev, 'the password of ann')).status).to.equal(201)
      expect(await statusWith(cookie)).to.equal(401)
    })

    it('cannot be given to a user before the login, nor be read by scripts or sent by other sites', async () => {
      const before = await login()
      // Two logins in the same second get equal cookies.
      const given = before.cookie.replace(/.$/, last => last === 'x' ? 'y' : 'x')
      const { cookie, header } = await login(`Cookie: ${given}\r\n`)
      expect(cookie).to.not.equal(given)
      expect(header).to.match(/; HttpOnly/).and.to.match(/; SameSite=Lax/)
    })
  })

  it('with the disk can read documents and change them, and find no passwords', async () => {
    const marker = 'a text that is easy to find'
    const attached = await head('PUT', '/db/marked/f', 'Content-Type: a/b\r\n', administrator, marker)
    expect(attached.status).to.equal(201)
    const files = readdirSync(node.folder, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
      .map(entry => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
    expect(files.some(text => text.includes(marker))).to.equal(true)
    for (const secret of ['the password of', 'cluster-test']) {
      expect(files.some(text => text.includes(secret)), secret).to.equal(false)
    }
  })

  it('leave no password, cookie, token or secret in the log', async () => {
    const login = JSON.stringify({ name: 'ann', password: 'the password of ann' })
    const session = await head('POST', '/_session', 'Content-Type: application/json\r\n', null, login)
    const cookie = /AuthSession=([^;]+)/.exec(session.headers['set-cookie']!)![1]!
    const parts = ['{"alg":"HS256"}', '{"sub":"x"}', 'signature']
    const token = parts.map(part => Buffer.from(part).toString('base64url')).join('.')
    await head('GET', '/db', `Cookie: AuthSession=${cookie}\r\n`, null)
    await head('GET', '/db', `Cookie: AuthSession=${cookie}x!\r\n`, null)
    await head('GET', '/db', `Authorization: Bearer ${token}\r\n`, null)
    await head('GET', '/db', 'Authorization: Basic !!!not-base64-but-secret\r\n', null)
    await head('GET', '/db', '', 'ann:a wrong password')
    await head('GET', '/db?password=in-the-query', '', null)
    await head('POST', '/_session', 'Content-Type: application/json\r\n', null, '{"name":"ann","password":"broken-json')
    await as(administrator, 'PUT', '/_node/_local/_config/admins/carol', 'the password of carol')
    await as(administrator, 'PUT', '/_node/_local/_config/chttpd_auth/secret', 'the secret of cookies, long enough')
    const key = Buffer.from('k'.repeat(32)).toString('base64')
    await as(administrator, 'PUT', '/_node/_local/_config/jwt_keys/hmac:_default', key)
    await head('GET', '/db', `Authorization: Bearer ${token}\r\n`, null)
    const secrets = [
      'the password of', 'cluster-test', 'a wrong password', cookie, token, 'not-base64-but-secret', 'in-the-query',
      'broken-json', 'the secret of cookies', 'k'.repeat(32), key,
      'a secret that only this test knows', ...[administrator, member, boss, stranger, 'ann:a wrong password']
        .map(each => Buffer.from(each).toString('base64')),
    ]
    const log = node.log()
    expect(log).to.include('"path":"/_session"')
    for (const secret of secrets) expect(log.includes(secret), secret).to.equal(false)
  })

  it('by users of the same machine cannot read the data, the passwords and the secrets', async () => {
    await as(administrator, 'PUT', '/_node/_local/_config/uuids/max_count', '900')
    const data = join(node.folder, 'data')
    expect(statSync(data).mode & 0o077).to.equal(0)
    for (const entry of readdirSync(join(node.folder, 'local.d'))) {
      const file = join(node.folder, 'local.d', entry)
      expect(readFileSync(file, 'utf8')).to.not.include('the password of carol')
      expect(statSync(file).mode & 0o077, entry).to.equal(0)
    }
  })
})
