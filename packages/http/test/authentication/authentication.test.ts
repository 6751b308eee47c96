import { pbkdf2Sync, createHash } from 'node:crypto'
import { expect } from 'chai'
import { hashAdminPassword, parseAdminHash } from '../../src/authentication/admin-password.ts'
import { verifyPassword } from '../../src/authentication/password-hash.ts'
import { parseBasicCredentials } from '../../src/authentication/basic-credentials.ts'
import { ManualClock, MemoryMachine, SeededRandom } from '@sectional/runtime'
import { basic, MemoryNode } from '../memory-node.ts'

describe('administrator passwords', () => {
  const machine = new MemoryMachine(new ManualClock())
  const bounds = { passwordIterationsMin: 1, passwordIterationsMax: 1000 }
  const forms = {
    'pbkdf2 with its digest': `-pbkdf2:sha512-${pbkdf2Sync('pw', 'salt', 3, 64, 'sha512').toString('hex')},salt,3`,
    'pbkdf2 without a digest (sha1)': `-pbkdf2-${pbkdf2Sync('pw', 'salt', 3, 20, 'sha1').toString('hex')},salt,3`,
    'salted sha1': `-hashed-${createHash('sha1').update('pwsalt').digest('hex')},salt`,
  }
  for (const [name, form] of Object.entries(forms)) {
    it(`are verified in the form ${name}`, async () => {
      const parsed = parseAdminHash(form)!
      expect(await verifyPassword('pw', parsed, machine, bounds)).to.equal(true)
      expect(await verifyPassword('pW', parsed, machine, bounds)).to.equal(false)
    })
  }

  it('are hashed with a fresh salt, in a form that verifies', async () => {
    const hashed = await hashAdminPassword('anna', 'first pass', {
      iterations: 2, machine, random: new SeededRandom(1), clusterSecret: '',
    })
    expect(hashed).to.match(/^-pbkdf2:sha256-[0-9a-f]{64},[0-9a-f]{32},2$/)
    expect(await verifyPassword('first pass', parseAdminHash(hashed)!, machine, bounds)).to.equal(true)
  })

  it('have the same salt on every node of a cluster, and another one for another name or password', async () => {
    const hash = (name: string, password: string, clusterSecret: string, seed: number): Promise<string> =>
      hashAdminPassword(name, password, { iterations: 1, machine, random: new SeededRandom(seed), clusterSecret })
    expect(await hash('anna', 'pw', 'shared', 1)).to.equal(await hash('anna', 'pw', 'shared', 2))
    const salts = [
      ['anna', 'pw', 'shared'], ['bert', 'pw', 'shared'], ['anna', 'other', 'shared'], ['anna', 'pw', 'another'],
    ] as const
    const hashes = await Promise.all(salts.map(([name, password, secret]) => hash(name, password, secret, 1)))
    expect(new Set(hashes.map(stored => parseAdminHash(stored)!.salt)).size).to.equal(4)
    expect(await hash('anna', 'pw', '', 1)).not.to.equal(await hash('anna', 'pw', '', 2))
  })

  it('are plain text when they only look like a hash', () => {
    for (const text of ['secret', '-hashed-12,salt', '-pbkdf2-zz,salt,10', '-pbkdf2:md5-00,salt,10', '']) {
      expect(parseAdminHash(text)).to.equal(null)
    }
  })

  it('refuse iteration counts that would stall the server', async () => {
    const parsed = parseAdminHash(forms['pbkdf2 with its digest'])!
    let refusal = ''
    const low = { ...bounds, passwordIterationsMax: 2 }
    await verifyPassword('pw', parsed, machine, low).catch((error: Error) => { refusal = error.message })
    expect(refusal).to.equal('Iteration count is too high for this server')
  })
})

describe('basic credentials', () => {
  it('are split at the first colon', () => {
    expect(parseBasicCredentials(basic('emil', 'x:y::z'))).to.deep.equal({ name: 'emil', password: 'x:y::z' })
    expect(parseBasicCredentials(basic('Þóra', 'пароль ☃'))).to.deep.equal({ name: 'Þóra', password: 'пароль ☃' })
  })

  it('are none without a colon, for other schemes, and as _:_', () => {
    for (const header of ['Basic bm8gY29sb24=', 'Basic', 'Digest x', basic('_', '_')]) {
      expect(parseBasicCredentials(header)).to.equal(null)
    }
  })

  it('must be Base64', () => {
    for (const header of ['Basic ***', 'Basic YWJjZA']) {
      expect(() => parseBasicCredentials(header)).to.throw('Authorization header has invalid base64 value')
    }
  })
})

describe('authentication', () => {
  let node: MemoryNode
  beforeEach(() => { node = new MemoryNode() })
  afterEach(() => node.stop())

  it('refuses a wrong password and an unknown name alike, on public paths too', async () => {
    for (const authorization of [basic('admin', 'wrong'), basic('nobody', 'secret'), basic('constructor', 'x')]) {
      const refused = await node.get('/_up', { authorization })
      expect([refused.status, refused.json.reason]).to.deep.equal([401, 'Name or password is incorrect.'])
    }
  })

  it('does the same work for a wrong password and an unknown name, whatever the hash', async () => {
    node.configuration.put('chttpd_auth', 'iterations', '5')
    const rounds = async (name: string): Promise<number> => {
      const before = node.machine.pbkdf2Rounds
      expect((await node.get('/_up', { authorization: basic(name, `wrong ${before}`) })).status).to.equal(401)
      return node.machine.pbkdf2Rounds - before
    }
    const salt = 'salt'
    const users = {
      new: { password: 'x' },
      few: { password_scheme: 'pbkdf2', iterations: 2, salt, derived_key: '00'.repeat(20) },
      old: { password_scheme: 'simple', salt, password_sha: '00'.repeat(20) },
      none: {},
    }
    for (const [name, members] of Object.entries(users)) {
      const document = { name, type: 'user', roles: [], ...members }
      expect((await node.put(`/_users/org.couchdb.user:${name}`, document)).status).to.equal(201)
    }
    const names = [...Object.keys(users), 'admin', 'nobody']
    for (const name of names) await rounds(name)
    await node.clock.advance(300_000)
    // Five rounds of SHA-256, as a new hash has, and the two rounds of SHA-1 of `few`.
    for (const name of names) expect(await rounds(name), name).to.equal(7)
  })

  it('verifies a password once and then remembers the outcome', async () => {
    for (let i = 0; i < 5; i++) await node.get('/_up')
    for (let i = 0; i < 5; i++) await node.get('/_up', { authorization: basic('admin', 'wrong') })
    expect(node.machine.pbkdf2Calls).to.equal(2)
  })

  it('verifies the same password once for requests that come together', async () => {
    await Promise.all(Array.from({ length: 10 }, () => node.get('/_up')))
    expect(node.machine.pbkdf2Calls).to.equal(1)
  })

  it('forgets what it remembers as soon as the stored hash changes', async () => {
    expect((await node.get('/_session')).json.userCtx.name).to.equal('admin')
    await node.put('/_node/_local/_config/admins/admin', '"changed"')
    expect((await node.get('/_session')).status).to.equal(401)
    expect((await node.get('/_session', { authorization: basic('admin', 'changed') })).status).to.equal(200)
    node.configuration.put('admins', 'second', (node.configuration.get('admins', 'admin'))!)
    await node.delete('/_node/_local/_config/admins/admin', { authorization: basic('second', 'changed') })
    expect((await node.get('/_session', { authorization: basic('admin', 'changed') })).status).to.equal(401)
  })

  it('bounds the checks that wait', async () => {
    const answers = await Promise.all(
      Array.from({ length: 150 }, (_, i) => node.get('/_up', { authorization: basic(`nobody${i}`, 'guess') })),
    )
    const statuses = answers.map(answer => answer.status)
    expect(statuses.filter(status => status === 503)).to.have.length(48)
    expect(statuses.filter(status => status === 401)).to.have.length(102)
  })

  it('shows who is logged in, and that nobody is', async () => {
    expect((await node.get('/_session')).json).to.deep.include({
      ok: true, userCtx: { name: 'admin', roles: ['_admin'] },
    })
    const anonymous = (await node.get('/_session', { authorization: '' })).json
    expect(anonymous.userCtx).to.deep.equal({ name: null, roles: [] })
    expect(anonymous.info).not.to.have.property('authenticated')
    expect((await node.get('/_session?basic=true', { authorization: '' })).json.reason).to.equal('Please login.')
  })

  it('sends a challenge only when told to', async () => {
    await node.put('/db')
    const ask = (headers: Record<string, string> = {}) => node.get('/db', { authorization: '', ...headers })
    expect((await ask()).headers).not.to.have.property('www-authenticate')
    expect((await ask({ 'x-couchdb-www-authenticate': 'Cookie' })).headers['www-authenticate']).to.equal('Cookie')
    node.configuration.put('chttpd', 'WWW-Authenticate', 'Basic realm="staff only"')
    expect((await ask()).headers['www-authenticate']).to.equal('Basic realm="staff only"')
  })

  it('refuses anonymous requests where a valid user is required', async () => {
    node.configuration.put('chttpd', 'require_valid_user', 'true')
    const refused = await node.get('/', { authorization: '' })
    expect([refused.status, refused.json.reason, refused.headers['www-authenticate']]).to.deep.equal([
      401, 'Authentication required.', 'Basic realm="server"',
    ])
    expect((await node.get('/_up', { authorization: '' })).status).to.equal(401)
    node.configuration.put('chttpd', 'require_valid_user_except_for_up', 'true')
    expect((await node.get('/_up', { authorization: '' })).status).to.equal(200)
    for (const path of ['/_up/x', '/_session/x']) {
      expect((await node.post(path, {}, { authorization: '' })).json.reason, path).to.equal('Authentication required.')
    }
    expect((await node.get('/')).status).to.equal(200)
  })
})
