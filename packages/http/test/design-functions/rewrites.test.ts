import assert from 'node:assert/strict'
import { MemoryNode, type Answer } from '../memory-node.ts'

let node: MemoryNode

const shown = `(doc, req) => ({ json: {
  doc: doc && doc._id, id: req.id, query: req.query, method: req.method, path: req.path,
  requested: req.requested_path, body: req.body, mine: req.headers["X-Mine"], name: req.userCtx.name,
} })`

/** Saves the rules or the function, and requests a path below `_rewrite`. */
async function rewrite(
  rewrites: unknown, path: string, method = 'GET', body?: unknown, headers: Record<string, string> = {},
): Promise<Answer> {
  const { json } = await node.get('/db/_design/d')
  const answer = await node.put('/db/_design/d', {
    _rev: json._rev, rewrites, shows: { f: shown }, updates: { u: '(doc, req) => [{ _id: "made" }, req.body]' },
  })
  assert.equal(answer.status, 201, answer.text)
  return node.request(method, `/db/_design/d/_rewrite${path}`, body, headers)
}

function errorOf({ status, json }: Answer): readonly unknown[] {
  return [status, json.error, json.reason]
}

describe('_rewrite', () => {
  beforeEach(async () => {
    node = new MemoryNode()
    await node.put('/db')
    await node.put('/db/x', { n: 1 })
    await node.put('/secret')
    await node.put('/secret/_security', { members: { names: ['nobody'] }, admins: {} })
    await node.put('/secret/x', { n: 'secret' })
  })
  afterEach(() => node.stop())

  describe('by rules', () => {
    it('uses the first rule that matches path and method', async () => {
      const rules = [
        { from: 'a', to: '_show/f/post', method: 'POST' }, { from: 'a', to: '_show/f/first' },
        { from: 'a', to: '_show/f/second' },
      ]
      assert.equal((await rewrite(rules, '/a')).json.id, 'first')
      assert.equal((await rewrite(rules, '/a', 'POST', {})).json.id, 'post')
      assert.deepEqual(errorOf(await rewrite(rules, '/b')), [404, 'not_found', 'missing'])
      assert.deepEqual(errorOf(await rewrite(rules, '/a/b')), [404, 'not_found', 'missing'])
      const head = await node.request('HEAD', '/db/_design/d/_rewrite/a')
      assert.deepEqual([head.status, head.text], [200, ''])
    })

    it('binds variables of the path, and passes them and the query on', async () => {
      const query = { limit: ':n', tail: '*', fixed: 'x', other: 5 }
      const rules = [{ from: 'page/:id/*', to: '_show/f/:id/*', query }]
      const { json } = await rewrite(rules, '/page/x%2Fy/b/c?n=7&limit=1&more=a%20b')
      assert.equal(json.id, 'x/y/b/c')
      assert.deepEqual(json.query, { id: 'x/y', n: '7', limit: '7', more: 'a b', tail: 'b', fixed: 'x', other: '5' })
      assert.deepEqual(json.path, ['db', '_design', 'd', '_show', 'f', 'x/y', 'b', 'c'])
      assert.deepEqual(json.requested, ['db', '_design', 'd', '_rewrite', 'page', 'x/y', 'b', 'c'])
    })

    it('matches with a last `*` also nothing, with another one a segment, and ends the target with `*`', async () => {
      const rules = [
        { from: 'a/*/c', to: '_show/f/inner', query: { found: '*' } }, { from: 'b/*', to: '_show/f/b/*/behind' },
        { from: '*', to: '_show/f/*' },
      ]
      const inner = (await rewrite(rules, '/a/x/c')).json
      assert.deepEqual([inner.id, inner.query], ['inner', { found: 'x' }])
      assert.equal((await rewrite(rules, '/b')).json.id, 'b')
      assert.equal((await rewrite(rules, '/b/x/y')).json.id, 'b/x/y')
      assert.equal((await rewrite(rules, '/')).json.id, null)
      assert.equal((await rewrite(rules, '/other/path')).json.id, 'other/path')
    })

    it('writes keys as JSON', async () => {
      const rules = [{ from: ':a', to: '_show/f', query: { startkey: [':a', 1], endkey: [':a', {}], key: ':key' } }]
      const { json } = await rewrite(rules, '/v?key={"b":1}')
      assert.deepEqual(json.query, { a: 'v', startkey: ['v', 1], endkey: ['v', {}], key: { b: 1 } })
      assert.equal((await rewrite(rules, '/v?key=open')).status, 400)
    })

    it('puts numbers and booleans into the query where formats say so', async () => {
      const rules = [{
        from: 'k/:l/:b', to: '_show/f', formats: { l: 'int', b: 'bool', q: 'int', s: 'string' },
        query: { key: ':l', startkey: [':b', [':l', ':q']], endkey: ':s', limit: ':l', other: { l: ':l' } },
      }]
      const queryOf = async (path: string): Promise<unknown> => {
        const { json: { query: { key, startkey, endkey, limit, other } } } = await rewrite(rules, path)
        return { key, startkey, endkey, limit, other }
      }
      assert.deepEqual(await queryOf('/k/1/TRUE?q=-12345678901234567&s=1'), {
        key: 1, startkey: [true, [1, -12345678901234568]], endkey: '1', limit: '1', other: '{"l":":l"}',
      })
      assert.deepEqual(await queryOf(`/k/1.5/yes?q=${'9'.repeat(400)}&s=a`), {
        key: '1.5', startkey: ['yes', ['1.5', '9'.repeat(400)]], endkey: 'a', limit: '1.5', other: '{"l":":l"}',
      })
      assert.equal((await rewrite([{ from: '*', to: 'x', formats: 1 }], '/a')).json.error, 'rewrite_error')
    })

    it('leads to documents and the database, and passes the body on', async () => {
      const rules = [
        { from: '', to: '../..' }, { from: 'doc/:id', to: '../../:id' },
        { from: 'do', to: '_update/u', method: 'PUT' },
      ]
      assert.equal((await rewrite(rules, '/')).json.db_name, 'db')
      assert.equal((await rewrite(rules, '')).json.db_name, 'db')
      assert.equal((await rewrite(rules, '/doc/x')).json.n, 1)
      assert.equal((await rewrite(rules, '/doc/new', 'PUT', { n: 2 })).status, 201)
      assert.equal((await node.get('/db/new')).json.n, 2)
      const made = await rewrite(rules, '/do', 'PUT', 'text')
      assert.deepEqual([made.status, made.text], [201, 'text'])
    })

    it('leads to attachments, whose content is streamed, and to feeds', async () => {
      const rules = [{ from: 'files/*', to: '../../x/*' }, { from: 'feed', to: '../../_changes' }]
      const { json: { _rev } } = await node.get('/db/x')
      const content = 'a'.repeat(100_000)
      const stored = await rewrite(rules, `/files/dir/a%2Fb.txt?rev=${_rev}`, 'PUT', content, {
        'content-type': 'text/plain',
      })
      assert.equal(stored.status, 201, stored.text)
      assert.equal((await node.get('/db/x/dir/a%2Fb.txt')).text, content)
      assert.equal((await node.get('/db/_design/d/_rewrite/files/dir/a%2Fb.txt')).text, content)
      const feed = await node.get('/db/_design/d/_rewrite/feed?feed=longpoll&limit=1')
      assert.equal(feed.json.results.length, 1)
    })

    it('does not lead out of the database unless that is allowed', async () => {
      const out = [{ from: '', to: '../../../secret/x' }]
      const insecure = [500, 'insecure_rewrite_rule', 'too many ../.. segments']
      assert.deepEqual(errorOf(await rewrite(out, '/')), insecure)
      const everything = [{ from: '*', to: '*' }]
      assert.deepEqual(errorOf(await rewrite(everything, '/%2E%2E/%2E%2E/x')), [404, 'not_found', 'missing'])
      assert.deepEqual(errorOf(await rewrite('() => "../../../secret/x"', '/')), insecure)
      node.configuration.put('chttpd', 'secure_rewrites', 'false')
      assert.equal((await rewrite(out, '/')).json.n, 'secret')
      assert.equal((await rewrite(everything, '/%2E%2E/%2E%2E/x')).json.n, 1)
    })

    it('passes on parameters that are not UTF-8, and refuses them as names of documents', async () => {
      const rules = [{ from: 'id', to: '../../:id' }, { from: '*', to: '../../x' }]
      assert.equal((await rewrite(rules, '/a?x=%FF')).status, 200)
      assert.deepEqual(errorOf(await rewrite(rules, '/id?id=%FF')), [
        400, 'illegal_docid', 'Document id must be valid UTF-8',
      ])
    })

    it('has limits for the number of rules and for the target, which is read again', async () => {
      const rule = { from: 'none', to: '../../x' }
      const query = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`name${index}`, 'value']))
      const many = await rewrite(Array.from({ length: 10_001 }, () => rule), '/x')
      assert.equal(many.json.error, 'rewrite_error')
      assert.match(many.json.reason, /There are 10001 rules, the limit is 10000/)
      assert.equal((await rewrite([{ from: '', to: '_rewrite', query }], '')).status, 414)
    })

    it('is refused without rules, with wrong ones, and after too many rewrites', async () => {
      assert.deepEqual(errorOf(await rewrite(undefined, '/a')), [404, 'rewrite_error', 'Invalid path.'])
      for (const rule of [1, { from: 1, to: '' }, { from: '*' }, { from: '*', to: 'x', query: [] }]) {
        assert.deepEqual(errorOf(await rewrite([rule], '/a')).slice(0, 2), [500, 'rewrite_error'])
      }
      assert.deepEqual(errorOf(await rewrite([{ from: '*', to: '_rewrite/*' }], '/a')),
        [400, 'bad_request', 'Exceeded rewrite recursion limit'])
    })
  })

  describe('by a function', () => {
    it('leads to the path that it returns, with method, query, headers and body', async () => {
      const text = (await rewrite('req => "_show/f/" + req.path.at(-1)', '/one?q=z')).json
      assert.deepEqual([text.id, text.query, text.method], ['one', { q: 'z' }, 'GET'])
      const source = `req => ({
        path: "_show/f/two?a=1", query: { b: 2, key: '"k"' }, headers: { "X-Mine": "yes" }, method: "POST",
        body: "mine",
      })`
      const { json } = await rewrite(source, '/', 'PUT', 'sent')
      assert.deepEqual([json.id, json.query, json.method, json.mine, json.body],
        ['two', { a: '1', b: '2', key: 'k' }, 'POST', 'yes', 'mine'])
      assert.equal((await rewrite('req => "_show/f"', '/', 'POST', 'sent')).json.body, 'sent')
    })

    it('may answer itself, or refuse', async () => {
      const answering = '() => ({ code: 202, headers: { "X-A": "1" }, body: "made" })'
      const { status, headers, text } = await rewrite(answering, '/')
      assert.deepEqual([status, headers['x-a'], text], [202, '1', 'made'])
      assert.equal(headers['content-security-policy'], 'sandbox')
      assert.deepEqual(errorOf(await rewrite('() => {}', '/')), [404, 'rewrite_error', 'Invalid path.'])
      assert.deepEqual(errorOf(await rewrite('() => ({})', '/')),
        [500, 'rewrite_error', 'Rewrite result must produce a new path.'])
      for (const result of ['1', '{ path: 1 }', '{ path: "x", method: "a b" }', '{ path: "x", query: 1 }', 'req.a.b']) {
        assert.deepEqual(errorOf(await rewrite(`req => (${result})`, '/')).slice(0, 2), [500, 'rewrite_error'])
      }
      assert.deepEqual(errorOf(await rewrite('() => { throw { forbidden: "no" } }', '/')), [403, 'forbidden', 'no'])
    })

    it('ends after too many rewrites', async () => {
      node.configuration.put('chttpd', 'rewrite_limit', '3')
      const longer = 'req => req.path.length > 6 ? "_show/f" : ["_rewrite", ...req.path.slice(4), "a"].join("/")'
      assert.equal((await rewrite(longer, '/x')).status, 200)
      assert.equal((await rewrite('req => "_rewrite/x"', '/x')).status, 400)
    })
  })

  describe('passes every check that a direct request passes', () => {
    const anonymous = { authorization: '' }

    it('of the rights of the user', async () => {
      node.configuration.put('chttpd', 'secure_rewrites', 'false')
      const to = (path: string) => [{ from: '*', to: path }]
      await node.put('/db/_security', { members: { roles: [] }, admins: { roles: ['_admin'] } })
      const refused = async (rewrites: unknown, method = 'GET', body?: unknown) =>
        (await rewrite(rewrites, '/a', method, body, anonymous)).status
      assert.equal(await refused(to('../../../secret/x')), 401)
      assert.equal(await refused(to('../../../_active_tasks')), 401)
      assert.equal(await refused(to('../../_compact'), 'POST', {}), 401)
      assert.equal(await refused(to('../../_security'), 'PUT', {}), 401)
      assert.equal(await refused(to('../../_design/e'), 'PUT', {}), 401)
      assert.equal(await refused('() => ({ path: "../../../secret/x", method: "DELETE" })'), 401)
      assert.equal(await refused('() => ({ path: "../../_design/f", method: "PUT", body: "{}" })'), 401)
      assert.equal((await node.get('/secret/x')).json.n, 'secret')
    })

    it('and its user is that of the request, whatever headers a function sets', async () => {
      await node.put('/db/_security', { members: { roles: [] }, admins: { roles: ['_admin'] } })
      const reserved = [
        'Authorization', 'COOKIE', 'X-Auth-CouchDB-UserName', 'X-Forwarded-Host', 'Origin', 'X-Http-Method-Override',
        'X-CouchDB-Requested-Path', 'Content-Length', 'Transfer-Encoding', 'X-Public-Host', 'Referer', 'Sec-Fetch-Site',
        'X-Auth-Service-Roles', 'X-CouchDB-VHost-Path', 'X-Client', 'X-Name',
      ]
      node.configuration.put('chttpd', 'peer_header', 'X-Client')
      node.configuration.put('chttpd_auth', 'x_auth_username', 'X-Name')
      node.configuration.put('chttpd', 'x_forwarded_host', 'X-Public-Host')
      for (const name of reserved) {
        const source = `() => ({ path: "_show/f", headers: { "${name}": "x" } })`
        const answer = await rewrite(source, '/', 'GET', undefined, anonymous)
        assert.deepEqual(errorOf(answer).slice(0, 2), [500, 'rewrite_error'])
      }
      assert.equal((await rewrite('() => "_show/f"', '/', 'GET', undefined, anonymous)).json.name, null)
      assert.equal((await rewrite('() => "_show/f"', '/')).json.name, 'admin')
    })

    it('and no headers that a client could not send', async () => {
      await node.put('/db/_security', { members: { roles: [] }, admins: { roles: ['_admin'] } })
      const lines = node.log.lines.length
      const impossible = [['X-CouchDB-WWW-Authenticate', 'a\r\nb: c'], ['X-Mine', '\0'], ['a\r\nb', 'c']] as const
      for (const [name, value] of impossible) {
        const headers = JSON.stringify({ [name]: value })
        const source = `() => ({ path: "../../_purge", method: "POST", headers: ${headers} })`
        const answer = await rewrite(source, '/', 'GET', undefined, anonymous)
        assert.deepEqual(errorOf(answer), [
          500, 'rewrite_error', `A rewrite must not set a header with the name ${JSON.stringify(name)} and this value.`,
        ])
      }
      assert(node.log.lines.slice(lines).every(({ level }) => level !== 'warn'))
    })

    it('and the path that the client asked for cannot be made up', async () => {
      const { json } = await rewrite([{ from: 'a', to: '_show/f' }], '/a', 'GET', undefined, {
        'x-couchdb-requested-path': '/made/up',
      })
      assert.deepEqual(json.requested, ['db', '_design', 'd', '_rewrite', 'a'])
    })

    it('and the log has the request of the client', async () => {
      await rewrite('() => ({ path: "_show/f", method: "POST" })', '/b', 'PUT', {})
      const { fields } = node.log.lines.findLast(({ message }) => message === 'request')!
      const { method, path, route, status } = fields as Record<string, unknown>
      assert.deepEqual([method, path, route, status], ['PUT', '/db/_design/d/_rewrite/b', 'show', 200])
    })

    it('of the length of the target', async () => {
      node.configuration.put('chttpd', 'max_uri_length', '1000')
      assert.equal((await rewrite('() => "_show/f/" + "x".repeat(2000)', '/')).status, 414)
    })
  })
})
