import { createHmac } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { ApiError } from '@sectional/core'
import { expect } from 'chai'
import { SessionSecrets } from '../../src/authentication/session-secrets.ts'
import { basic, MemoryNode, type Answer } from '../memory-node.ts'

const anonymous = { authorization: '' }
const secretName = 'chttpd_auth/secret'

describe('cookie sessions', () => {
  let node: MemoryNode
  beforeEach(() => { node = new MemoryNode() })
  afterEach(() => node.stop())

  const login = (name: string, password: string, headers: Record<string, string> = {}): Promise<Answer> =>
    node.post('/_session', { name, password }, { ...anonymous, ...headers })
  const cookieOf = (answer: Answer): string => answer.headers['set-cookie']!.split(';', 1)[0]!
  const whoIs = async (cookie: string): Promise<unknown> =>
    (await node.get('/_session', { ...anonymous, cookie })).json.userCtx.name
  const secretOf = (): string => node.control.state()!.settings[secretName]!
  const forge = (name: string, hexTime: string, key: string, digest = 'sha256'): string => {
    const message = `${name}:${hexTime}`
    const signature = createHmac(digest, key).update(message).digest()
    return `AuthSession=${Buffer.concat([Buffer.from(`${message}:`), signature]).toString('base64url')}`
  }
  const seconds = (): number => Math.floor(node.clock.now() / 1000)
  const hex = (value: number): string => value.toString(16).toUpperCase()

  it('refuse large login bodies', async () => {
    const refused = await login('admin', 'x'.repeat(65_536))
    expect([refused.status, refused.json.error]).to.deep.equal([413, 'too_large'])
    const bomb = await node.post('/_session', gzipSync(Buffer.alloc(10_000_000, ' ')) as never, {
      ...anonymous, 'content-type': 'application/json', 'content-encoding': 'gzip',
    })
    expect([bomb.status, bomb.json.error]).to.deep.equal([413, 'too_large'])
  })

  it('log an administrator in with JSON or a form, and out again', async () => {
    const begun = await login('admin', 'secret')
    expect([begun.status, begun.json]).to.deep.equal([200, { ok: true, name: 'admin', roles: ['_admin'] }])
    expect(begun.headers['set-cookie']).to.match(
      new RegExp('^AuthSession=[\\w-]+; Version=1; Expires=\\w{3}, \\d\\d \\w{3} \\d{4} [\\d:]{8} GMT; Max-Age=600; '
        + 'Path=/; HttpOnly; SameSite=Lax$'),
    )
    const session = await node.get('/_session', { ...anonymous, cookie: `theme=dark; ${cookieOf(begun)}` })
    expect(session.json.userCtx).to.deep.equal({ name: 'admin', roles: ['_admin'] })
    expect(session.json.info).to.deep.include({
      authentication_handlers: ['cookie', 'default'], authenticated: 'cookie',
    })
    expect((await node.get('/_all_dbs', { ...anonymous, cookie: cookieOf(begun) })).status).to.equal(200)
    const form = await node.post('/_session', 'username=admin&password=%73ecret', {
      ...anonymous, 'content-type': 'application/x-www-form-urlencoded; charset=utf-8',
    })
    expect(form.status).to.equal(200)
    const ended = await node.delete('/_session', { ...anonymous, cookie: cookieOf(begun) })
    expect([ended.status, ended.json]).to.deep.equal([200, { ok: true }])
    expect(ended.headers['set-cookie']).to.match(
      /^AuthSession=; Version=1; Expires=.*; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax$/,
    )
    expect(await whoIs('AuthSession=')).to.equal(null)
  })

  it('are not sent with requests of other sites, unless those may send credentials', async () => {
    const sameSite = async (): Promise<string | undefined> =>
      /SameSite=(\w+)/.exec((await login('admin', 'secret')).headers['set-cookie']!)?.[1]
    expect(await sameSite()).to.equal('Lax')
    node.configuration.put('chttpd', 'enable_cors', 'true')
    node.configuration.put('cors', 'credentials', 'true')
    expect(await sameSite(), 'no origin').to.equal('Lax')
    node.configuration.put('cors', 'origins', '*')
    expect(await sameSite(), 'every origin, without credentials').to.equal('Lax')
    node.configuration.put('cors', 'origins', 'https://app.example')
    expect(await sameSite()).to.equal(undefined)
    node.configuration.put('chttpd_auth', 'same_site', 'None')
    expect(await sameSite()).to.equal('None')
    node.configuration.put('cors', 'credentials', 'false')
    node.configuration.put('chttpd_auth', 'same_site', '')
    expect(await sameSite()).to.equal(undefined)
  })

  it('are logged to lack SameSite when the option has a value that is not valid, once for each', async () => {
    const warned = (): readonly unknown[] => node.log.lines.splice(0).filter(({ level }) => level === 'warn')
      .map(({ fields: { option, value, valid } }) => [option, value, valid])
    for (const value of ['None', 'lax', 'STRICT', 'auto', '', 'laxx', 'laxx', 'lax', 'x'.repeat(1000)]) {
      node.configuration.put('chttpd_auth', 'same_site', value)
    }
    expect(warned()).to.deep.equal(['laxx', 'x'.repeat(100)].map(value => (
      ['chttpd_auth/same_site', value, 'none, lax, strict, auto'])))
    const started = new MemoryNode({ http: { sameSite: 'laxx' } })
    expect(started.log.lines.map(({ fields }) => fields['value'])).to.deep.equal(['laxx'])
    await started.stop()
  })

  it('are not renewed within their first second, however short they are', async () => {
    node.configuration.put('chttpd_auth', 'timeout', '3')
    await node.clock.advance(999 - node.clock.now() % 1000)
    const cookie = cookieOf(await login('admin', 'secret'))
    expect((await node.get('/_session', { ...anonymous, cookie })).headers).not.to.have.property('set-cookie')
    await node.clock.advance(1)
    expect((await node.get('/_session', { ...anonymous, cookie })).headers).to.have.property('set-cookie')
  })

  it('answer a wrong password with 401 and a clearing cookie, without a challenge', async () => {
    node.configuration.put('chttpd', 'require_valid_user', 'true')
    for (const [name, password] of [['admin', 'wrong'], ['nobody', 'secret'], ['admin', '']] as const) {
      const refused = await login(name, password)
      expect([refused.status, refused.json]).to.deep.equal([
        401, { error: 'unauthorized', reason: 'Name or password is incorrect.' },
      ])
      expect(cookieOf(refused)).to.equal('AuthSession=')
      expect(refused.headers).not.to.have.property('www-authenticate')
    }
    expect(node.control.state()!.settings).to.deep.equal({})
  })

  it('refuse requests that are no login', async () => {
    const post = async (body: unknown, type = 'application/json'): Promise<unknown[]> => {
      const answer = await node.post('/_session', body, { ...anonymous, 'content-type': type })
      return [answer.status, answer.json.reason]
    }
    expect(await post('{"name": "d')).to.deep.equal([400, 'invalid UTF-8 JSON'])
    expect(await post('')).to.deep.equal([400, 'invalid UTF-8 JSON'])
    expect(await post('{"password":"x"}')).to.deep.equal([400, 'request body must contain a username'])
    for (const names of ['{"name":"a","username":"b"}', '{"name":"","username":"admin"}']) {
      expect(await post(names)).to.deep.equal([400, 'request body contains different usernames'])
    }
    expect(await post('{"name":"","password":"x"}')).to.deep.equal([401, 'Name or password is incorrect.'])
    expect(await post('name=admin', 'text/plain')).to.deep.equal([
      415, "Content-Type must be 'application/x-www-form-urlencoded' or 'application/json'",
    ])
  })

  it('send a browser on to a path of this host', async () => {
    const body = { name: 'admin', password: 'secret' }
    const begun = await node.post('/_session?next=/app?tab=1', body, anonymous)
    expect([begun.status, begun.headers['location']]).to.deep.equal([302, 'http://node.example:5984/app?tab=1'])
    expect((await node.post('/_session?next=//evil.example', body, anonymous)).headers['location']).to.equal(
      'http://node.example:5984//evil.example',
    )
    expect((await node.post('/_session?next=app', body, anonymous)).json.reason).to.equal('path must begin with a /.')
    const failed = await node.post('/_session?next=/app&fail=/login', { ...body, password: 'no' }, anonymous)
    expect([failed.status, failed.headers['location'], cookieOf(failed)]).to.deep.equal([
      302, 'http://node.example:5984/login', 'AuthSession=',
    ])
    expect((await node.delete('/_session?next=/bye', anonymous)).status).to.equal(302)
    const escaped = await node.delete('/_session?next=/a%2520b%2Fc%20%C3%BC%0D%25', anonymous)
    expect(escaped.headers['location']).to.equal('http://node.example:5984/a%20b/c%20%C3%BC%0D%25')
  })

  it('send a browser on to a path that is a field of its form', async () => {
    const post = async (form: string, query = ''): Promise<unknown> => {
      const { status, headers, json } = await node.post(`/_session${query}`, form, {
        ...anonymous, 'content-type': 'application/x-www-form-urlencoded',
      })
      return [status, headers['location'] ?? json.reason]
    }
    const fields = 'name=admin&next=%2Fapp&fail=%2Flogin'
    expect(await post(`${fields}&password=secret`)).to.deep.equal([302, 'http://node.example:5984/app'])
    expect(await post(`${fields}&password=no`)).to.deep.equal([302, 'http://node.example:5984/login'])
    expect(await post(`${fields}&password=secret`, '?next=/other')).to.deep.equal([
      302, 'http://node.example:5984/other',
    ])
    expect(await post('name=admin&password=secret&next=app')).to.deep.equal([400, 'path must begin with a /.'])
  })

  it('take the first of repeated fields of a form', async () => {
    const begun = await node.post('/_session', 'name=admin&password=secret&name=bob&password=x', {
      ...anonymous, 'content-type': 'application/x-www-form-urlencoded',
    })
    expect([begun.status, begun.json.name]).to.deep.equal([200, 'admin'])
  })

  it('end after the timeout, and are renewed once a tenth of it is over', async () => {
    const cookie = cookieOf(await login('admin', 'secret'))
    await node.clock.advance(59_000)
    expect((await node.get('/_session', { ...anonymous, cookie })).headers).not.to.have.property('set-cookie')
    await node.clock.advance(2_000)
    const renewing = await node.get('/_all_dbs', { ...anonymous, cookie })
    expect(await whoIs(cookieOf(renewing))).to.equal('admin')
    expect(cookieOf(await node.delete('/_session', { ...anonymous, cookie }))).to.equal('AuthSession=')
    await node.clock.advance(539_000)
    expect(await whoIs(cookie)).to.equal(null)
    expect(await whoIs(cookieOf(renewing))).to.equal('admin')
  })

  it('are not renewed by answers that shared caches may store and give to others', async () => {
    const cookie = cookieOf(await login('admin', 'secret'))
    await node.put('/db')
    await node.put('/db/_design/d', {
      shows: { s: '(doc, req) => ({ body: "x", headers: { [req.query.name]: req.query.value } })' },
    })
    await node.clock.advance(70_000)
    const renews = async (path: string): Promise<boolean> => {
      const answer = await node.get(path, { ...anonymous, cookie })
      expect(answer.status, path).to.equal(200)
      return answer.headers['set-cookie'] !== undefined
    }
    const show = '/db/_design/d/_show/s'
    expect(await renews('/favicon.ico')).to.equal(false)
    for (const value of ['public', 'max-age=5,Public', 'must-revalidate, s-maxage=60']) {
      expect(await renews(`${show}?name=cache-control&value=${value}`), value).to.equal(false)
    }
    expect(await renews(`${show}?name=Cache-Control&value=private, max-age=60`)).to.equal(true)
    expect(await renews('/_session')).to.equal(true)
  })

  it('take the first of several fields of a form, as CouchDB does', async () => {
    const send = (body: string): Promise<Answer> => node.post(
      '/_session', body, { ...anonymous, 'content-type': 'application/x-www-form-urlencoded' },
    )
    expect((await send('name=admin&password=secret&name=bob&password=x')).json).to.include({ ok: true, name: 'admin' })
    expect((await send('name=bob&password=x&name=admin&password=secret')).status).to.equal(401)
  })

  it('take attributes from the configuration', async () => {
    for (const [key, value] of [
      ['allow_persistent_cookies', 'false'], ['same_site', 'strict'], ['cookie_domain', 'db.example.org'],
    ] as const) {
      node.configuration.put('chttpd_auth', key, value)
    }
    expect((await login('admin', 'secret')).headers['set-cookie']).to.match(
      /^AuthSession=[\w-]+; Version=1; Domain=db\.example\.org; Path=\/; HttpOnly; SameSite=Strict$/,
    )
  })

  it('refuse cookies that cannot be read, on every path and beside valid credentials', async () => {
    for (const value of ['!!', 'b25seTp0d28', '%%%', 'x y']) {
      const answer = await node.get('/', { cookie: `AuthSession=${value}` })
      expect([answer.status, answer.json.reason], value).to.deep.equal([
        400, 'Malformed AuthSession cookie. Please clear your cookies.',
      ])
    }
  })

  it('trust only what the secret and the salt have signed', async () => {
    await login('admin', 'secret')
    const key = `${secretOf()}salt`
    const now = hex(seconds())
    expect(await whoIs(forge('admin', now, key))).to.equal('admin')
    expect(await whoIs(forge('admin', now, key, 'sha1'))).to.equal('admin')
    expect(await whoIs(forge('admin', now, key, 'sha512')), 'a digest that is not listed').to.equal(null)
    expect(await whoIs(forge('admin', now, `${secretOf()}pepper`)), 'another salt').to.equal(null)
    expect(await whoIs(forge('admin', now, 'salt')), 'no secret').to.equal(null)
    expect(await whoIs(forge('nobody', now, key)), 'nobody').to.equal(null)
    for (const time of [hex(seconds() - 601), 'zz', '', '-5', 'F'.repeat(16)]) {
      expect(await whoIs(forge('admin', time, key)), time).to.equal(null)
    }
    const [, value] = forge('admin', now, key).split('=') as [string, string]
    expect(await whoIs(`AuthSession=${Buffer.from(value, 'base64url').toString('base64')}`), 'Base64').to.equal('admin')
  })

  it('are signed with SHA-256 when no known algorithm is configured', async () => {
    for (const name of ['nonsense', '__proto__', 'constructor']) {
      node.configuration.put('chttpd_auth', 'hash_algorithms', name)
      expect(await whoIs(cookieOf(await login('admin', 'secret'))), name).to.equal('admin')
    }
  })

  it('that were verified lose their validity with the algorithms and the secrets', async () => {
    node.configuration.put('chttpd_auth', 'secret', 'first')
    const cookie = cookieOf(await login('admin', 'secret'))
    expect(await whoIs(cookie)).to.equal('admin')
    node.configuration.put('chttpd_auth', 'hash_algorithms', 'sha512')
    expect(await whoIs(cookie)).to.equal(null)
    node.configuration.put('chttpd_auth', 'hash_algorithms', 'sha512, sha256')
    expect(await whoIs(cookie)).to.equal('admin')
    for (const secret of ['second', 'third', 'fourth', 'fifth']) {
      node.configuration.put('chttpd_auth', 'secret', secret)
      expect(await whoIs(cookie), secret).to.equal('admin')
    }
    node.configuration.put('chttpd_auth', 'secret', 'sixth')
    expect(await whoIs(cookie), 'only four previous secrets are valid').to.equal(null)
  })

  it('take precedence over credentials, even wrong ones', async () => {
    const cookie = cookieOf(await login('admin', 'secret'))
    const method = async (headers: Record<string, string>): Promise<string> =>
      (await node.get('/_session', headers)).json.info.authenticated
    expect(await method({ cookie, authorization: basic('admin', 'wrong') })).to.equal('cookie')
    expect(await method({ cookie: 'AuthSession=' })).to.equal('default')
  })

  it('end when the password is changed', async () => {
    const cookie = cookieOf(await login('admin', 'secret'))
    await node.put('/_node/_local/_config/admins/admin', '"fresh one"')
    expect(await whoIs(cookie)).to.equal(null)
    expect((await login('admin', 'secret')).status).to.equal(401)
    expect((await login('admin', 'fresh one')).status).to.equal(200)
  })

  it('share one secret of the cluster, made once, kept out of log and configuration', async () => {
    await Promise.all([login('admin', 'secret'), login('admin', 'secret')])
    expect(secretOf()).to.match(/^[0-9a-f]{64}$/)
    const made = secretOf()
    await login('admin', 'secret')
    expect(secretOf()).to.equal(made)
    expect(JSON.stringify((await node.get('/_node/_local/_config')).json)).not.to.include(made)
    expect(JSON.stringify(node.log)).not.to.include(made)
  })

  it('signed with the previous secret stay valid for their lifetime', async () => {
    const first = cookieOf(await login('admin', 'secret'))
    await node.clock.advance(50_000)
    await node.put('/_node/_local/_config/chttpd_auth/secret', '"the next secret"')
    expect(await whoIs(first)).to.equal('admin')
    const second = cookieOf(await login('admin', 'secret'))
    expect(second).to.equal(forge('admin', hex(seconds()), 'the next secretsalt'))
    await node.clock.advance(551_000)
    expect([await whoIs(first), await whoIs(second)]).to.deep.equal([null, 'admin'])
  })

  for (const shared of [false, true]) {
    it(`end in time after a new secret of ${shared ? 'all nodes' : 'one node'}, also where nobody came meanwhile`,
      async () => {
        node.configuration.shared = shared
        await login('admin', 'secret')
        const first = secretOf()
        await node.put('/_node/_local/_config/chttpd_auth/secret', '"the next secret"')
        await node.clock.advance(600_000)
        expect(await whoIs(forge('admin', hex(seconds()), `${first}salt`))).to.equal(null)
      })
  }

  it('outlast a new secret of all nodes on a node that starts again, until their end', async () => {
    node.configuration.shared = true
    const cookie = cookieOf(await login('admin', 'secret'))
    const first = secretOf()
    const valid = (): readonly string[] => {
      const options = node.configuration.options.values
      const secrets = new SessionSecrets({ ...node, options, random: node.runtime.random })
      secrets.stop()
      return secrets.valid()
    }
    await node.put('/_node/_local/_config/chttpd_auth/secret', '"the second"')
    await node.clock.advance(100_000)
    await node.put('/_node/_local/_config/chttpd_auth/secret', '"the third"')
    expect(await whoIs(cookie)).to.equal('admin')
    expect(valid()).to.deep.equal(['the third', 'the second', first])
    await node.clock.advance(501_000)
    expect(valid()).to.deep.equal(['the third', 'the second'])
    await node.clock.advance(100_000)
    expect(valid()).to.deep.equal(['the third'])
    expect(JSON.stringify([node.log, (await node.get('/_node/_local/_config')).json])).not.to.include(first)
  })

  it('outlast a new secret of all nodes that is set under its former name', async () => {
    node.configuration.shared = true
    await login('admin', 'secret')
    await node.put('/_node/_local/_config/couch_httpd_auth/secret', '"the second"')
    expect(Object.keys(node.control.state()!.settings)).to.deep.equal([secretName, 'session/previous_secrets'])
  })

  it('need no entry in the metadata for a new secret of one node', async () => {
    await login('admin', 'secret')
    await node.put('/_node/_local/_config/chttpd_auth/secret', '"the second"')
    expect(Object.keys(node.control.state()!.settings)).to.deep.equal([secretName])
  })

  describe('when the configured secret is removed', () => {
    const path = '/_node/_local/_config/chttpd_auth/secret'
    let first: string
    beforeEach(async () => {
      await login('admin', 'secret')
      first = secretOf()
    })
    const forged = (secret: string): Promise<unknown> => whoIs(forge('admin', hex(seconds()), `${secret}salt`))

    const removals = {
      'by DELETE': () => node.request('DELETE', path),
      'in memory': () => node.request('DELETE', path, undefined, { 'x-couch-persist': 'false' }),
      'by an empty text': () => node.put(path, '""'),
    }
    for (const [way, remove] of Object.entries(removals)) {
      for (const shared of [true, false]) {
        it(`${way}, on ${shared ? 'all nodes' : 'one node'}, are signed with a new one, and not with an earlier one`,
          async () => {
            node.configuration.shared = shared
            await node.put(path, '"the second secret"')
            await node.clock.advance(500_000)
            const cookie = cookieOf(await login('admin', 'secret'))
            expect(await forged(first), 'previous').to.equal('admin')
            await node.clock.advance(99_000)
            expect((await remove()).status).to.equal(200)
            await node.clock.advance(1_000)
            expect(await whoIs(cookie)).to.equal('admin')
            expect(await forged(first), 'after its time').to.equal(null)
            expect(await forged('the second secret'), 'the one that was removed').to.equal('admin')
            expect(secretOf()).to.match(/^[0-9a-f]{64}$/).and.not.to.equal(first)
            const next = cookieOf(await login('admin', 'secret'))
            expect(next).to.equal(forge('admin', hex(seconds()), `${secretOf()}salt`))
            await node.clock.advance(599_000)
            expect([await forged('the second secret'), await whoIs(next)]).to.deep.equal([null, 'admin'])
          })
      }
    }

    it('continue with it when the metadata cannot be changed', async () => {
      node.configuration.shared = true
      await node.put(path, '"the second secret"')
      const cookie = cookieOf(await login('admin', 'secret'))
      await node.clock.advance(601_000)
      const change = node.control.setSetting.bind(node.control)
      for (const failing of [1, 2]) {
        let calls = 0
        node.control.setSetting = async (section, key, value) => {
          if (++calls === failing) throw new ApiError('service_unavailable')
          await change(section, key, value)
        }
        expect((await node.request('DELETE', path)).status, `call ${failing}`).to.equal(503)
        expect(node.configuration.get('chttpd_auth', 'secret')).to.equal('the second secret')
        const present = cookieOf(await login('admin', 'secret'))
        expect(present).to.equal(forge('admin', hex(seconds()), 'the second secretsalt')).and.not.to.equal(cookie)
        expect(await forged(first)).to.equal(null)
      }
      node.control.setSetting = change
      expect((await node.request('DELETE', path)).status).to.equal(200)
      expect(await forged(first)).to.equal(null)
    })

    it('under its former name, are signed with a new one', async () => {
      node.configuration.shared = true
      node.configuration.put('chttpd_auth', 'secret', 'the second secret')
      await node.request('DELETE', '/_node/_local/_config/couch_httpd_auth/secret')
      expect(secretOf()).to.equal(first)
      node.configuration.put('couch_httpd_auth', 'secret', 'the second secret')
      await node.request('DELETE', '/_node/_local/_config/couch_httpd_auth/secret')
      expect(secretOf()).to.match(/^[0-9a-f]{64}$/).and.not.to.equal(first)
    })

    it('are signed as before when none was configured, or nothing is changed', async () => {
      node.configuration.put('chttpd_auth', 'secret', '')
      expect((await node.request('DELETE', path)).status).to.equal(200)
      expect((await node.request('DELETE', path)).status).to.equal(404)
      expect(secretOf()).to.equal(first)
    })
  })
})
