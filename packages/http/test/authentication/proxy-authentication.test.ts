import { createHmac, pbkdf2Sync } from 'node:crypto'
import { expect } from 'chai'
import { basic, MemoryNode, type Answer } from '../memory-node.ts'

const anonymous = { authorization: '' }
const listed = '{chttpd_auth, proxy_authentication_handler}, {chttpd_auth, cookie_authentication_handler}, '
  + '{chttpd_auth, default_authentication_handler}'

describe('proxy authentication', () => {
  let node: MemoryNode
  beforeEach(() => { node = new MemoryNode() })
  afterEach(() => node.stop())

  const session = (headers: Record<string, string>): Promise<Answer> =>
    node.get('/_session', { ...anonymous, ...headers })
  const whoIs = async (headers: Record<string, string>): Promise<unknown> => (await session(headers)).json.userCtx
  const nobody = { name: null, roles: [] }
  const bytes = (text: string): string => Buffer.from(text).toString('latin1')
  const enable = (): void => { node.configuration.put('chttpd', 'authentication_handlers', listed) }
  const sign = (name: string, secret: string, digest = 'sha256'): string =>
    createHmac(digest, secret).update(name).digest('hex')

  it('is off by default', async () => {
    expect(await whoIs({ 'x-auth-service-username': 'anna' })).to.deep.equal(nobody)
  })

  it('takes the name and the roles from headers', async () => {
    enable()
    const answer = await session({
      'x-auth-service-username': 'remote user', 'x-auth-service-roles': ' one ,two,, three',
    })
    expect(answer.json.userCtx).to.deep.equal({ name: 'remote user', roles: ['one', 'two', '', 'three'] })
    expect(answer.json.info).to.deep.equal({
      authentication_handlers: ['proxy', 'cookie', 'default'], authenticated: 'proxy', authentication_db: '_users',
    })
    expect(await whoIs({ 'x-auth-service-username': 'remote' })).to.deep.equal({ name: 'remote', roles: [] })
    expect(await whoIs({ 'x-auth-service-roles': '_admin' })).to.deep.equal(nobody)
    expect(await whoIs({ 'x-auth-service-username': '' })).to.deep.equal(nobody)
  })

  it('reads names of headers from the configuration, without regard to case', async () => {
    enable()
    node.configuration.put('chttpd_auth', 'x_auth_username', 'X-Auth-CouchDB-UserName')
    expect(await whoIs({ 'x-auth-couchdb-username': 'anna' })).to.deep.include({ name: 'anna' })
    expect(await whoIs({ 'x-auth-service-username': 'anna' })).to.deep.equal(nobody)
  })

  it('reads headers as UTF-8 and refuses other bytes', async () => {
    enable()
    expect(await whoIs({ 'x-auth-service-username': bytes('Þóra 日本'), 'x-auth-service-roles': bytes('größe') }))
      .to.deep.equal({ name: 'Þóra 日本', roles: ['größe'] })
    for (const header of ['x-auth-service-username', 'x-auth-service-roles']) {
      const refused = await session({ 'x-auth-service-username': 'anna', [header]: 'gr\xf6\xdfe' })
      expect([refused.status, refused.json.error]).to.deep.equal([400, 'bad_request'])
    }
  })

  it('keeps every character of names and roles, apart from blanks of ASCII around them', async () => {
    enable()
    const roles = '\ufeff_admin,\u00a0_admin,_admin\u2028,\u3000'
    expect(await whoIs({ 'x-auth-service-username': bytes('\ufeffanna'), 'x-auth-service-roles': bytes(roles) }))
      .to.deep.equal({ name: '\ufeffanna', roles: roles.split(',') })
    expect(await whoIs({ 'x-auth-service-username': 'anna', 'x-auth-service-roles': 'a\t,\t b , ,' }))
      .to.deep.equal({ name: 'anna', roles: ['a', 'b'] })
  })

  it('gives the rights of the roles, also of a server administrator', async () => {
    enable()
    expect((await node.get('/_all_dbs', { ...anonymous, 'x-auth-service-username': 'op' })).status).to.equal(401)
    const admin = { ...anonymous, 'x-auth-service-username': 'op', 'x-auth-service-roles': 'x, _admin' }
    expect((await node.get('/_all_dbs', admin)).status).to.equal(200)
  })

  describe('with proxy_use_secret', () => {
    beforeEach(() => {
      enable()
      node.configuration.put('chttpd_auth', 'proxy_use_secret', 'true')
    })
    const as = (name: string, token?: string): Record<string, string> => ({
      'x-auth-service-username': name, ...(token !== undefined && { 'x-auth-service-token': token }),
    })

    it('needs a token that is signed with the secret by a listed digest', async () => {
      node.configuration.put('chttpd_auth', 'secret', 'the secret')
      for (const digest of ['sha256', 'sha1']) {
        expect(await whoIs(as('sam', sign('sam', 'the secret', digest))), digest).to.deep.include({ name: 'sam' })
      }
      const right = sign('sam', 'the secret')
      for (const wrong of [
        undefined, '', 'zz', right.toUpperCase(), right.slice(2), `${right}00`, sign('sam', 'the secret', 'sha512'),
        sign('sam', ''), sign('pat', 'the secret'), sign('sam', 'another'), '\xff'.repeat(64),
      ]) expect(await whoIs(as('sam', wrong)), wrong).to.deep.equal(nobody)
    })

    it('needs a token of the whole name', async () => {
      node.configuration.put('chttpd_auth', 'secret', 'the secret')
      const name = 'Þóra'
      expect(await whoIs(as(bytes(name), sign(name, 'the secret')))).to.deep.include({ name })
      expect(await whoIs(as(`evil, ${bytes(name)}`, sign(name, 'the secret')))).to.deep.equal(nobody)
    })

    it('trusts nobody while the node has no secret', async () => {
      expect(await whoIs(as('sam', sign('sam', '')))).to.deep.equal(nobody)
    })

    it('honours the previous secret for the lifetime of a session', async () => {
      node.configuration.put('chttpd_auth', 'secret', 'first')
      expect(await whoIs(as('sam', sign('sam', 'first')))).to.deep.include({ name: 'sam' })
      node.configuration.put('chttpd_auth', 'secret', 'second')
      expect(await whoIs(as('sam', sign('sam', 'first')))).to.deep.include({ name: 'sam' })
      expect(await whoIs(as('sam', sign('sam', 'second')))).to.deep.include({ name: 'sam' })
      await node.clock.advance(601_000)
      expect(await whoIs(as('sam', sign('sam', 'first')))).to.deep.equal(nobody)
    })

    it('does not accept a token that was verified before for another name, nor with another digest', async () => {
      node.configuration.put('chttpd_auth', 'secret', 'first')
      const token = sign('sam', 'first')
      expect(await whoIs(as('sam', token))).to.deep.include({ name: 'sam' })
      expect(await whoIs(as('sa', `${token}m`))).to.deep.equal(nobody)
      expect(await whoIs(as('anna', token))).to.deep.equal(nobody)
      node.configuration.put('chttpd_auth', 'hash_algorithms', 'sha512')
      expect(await whoIs(as('sam', token))).to.deep.equal(nobody)
    })

    it('accepts no signature of a session as a token, whatever salt a user has chosen', async () => {
      node.configuration.put('chttpd_auth', 'secret', 'the secret')
      for (const [name, salt] of [['zero', '\0'], ['zeros', '\0'.repeat(9)], ['other', 's']] as const) {
        await node.put(`/_users/org.couchdb.user:${name}`, {
          name, type: 'user', roles: [], password_scheme: 'pbkdf2', pbkdf2_prf: 'sha256', salt, iterations: 1,
          derived_key: pbkdf2Sync('pw', salt, 1, 32, 'sha256').toString('hex'),
        })
        const begun = await node.during(node.post('/_session', { name, password: 'pw' }, anonymous))
        const [, value = ''] = /AuthSession=([^;]*)/.exec(begun.headers['set-cookie'] as string)!
        const cookie = Buffer.from(value, 'base64url')
        const [signed = ''] = /^[^:]*:[^:]*/.exec(cookie.toString('latin1')) ?? []
        const token = cookie.subarray(signed.length + 1).toString('hex')
        expect(await whoIs({ ...as(signed, token), 'x-auth-service-roles': '_admin' }), name).to.deep.equal(nobody)
        expect([name, begun.status]).to.deep.equal([name, name === 'other' ? 200 : 401])
      }
    })

    it('goes on with the next handler after a wrong token', async () => {
      const answer = await session({ ...as('sam', 'zz'), authorization: basic('admin', 'secret') })
      expect(answer.json.userCtx.name).to.equal('admin')
    })
  })

  it('warns while clients need no secret', async () => {
    const warnings = (): number => node.log.lines.filter(({ message }) => message.includes('proxy_use_secret')).length
    await node.put('/_node/_local/_config/chttpd/authentication_handlers', '"proxy, default"')
    await node.put('/_node/_local/_config/log/level', '"info"')
    expect(warnings()).to.equal(1)
    await node.put('/_node/_local/_config/chttpd_auth/proxy_use_secret', '"true"')
    expect(warnings()).to.equal(1)
  })

  it('hides the token from functions of design documents', async () => {
    node.configuration.put('chttpd_auth', 'x_auth_token', 'X-Proof')
    await node.put('/db')
    await node.put('/db/_design/d', { shows: { s: 'function (doc, req) { return JSON.stringify(req.headers) }' } })
    const shown = await node.get('/db/_design/d/_show/s', { 'x-proof': 'signed', 'x-other': 'seen' })
    expect(shown.text).to.include('seen').and.not.to.include('signed')
  })
})
