import { expect } from 'chai'
import { ManualClock, MemoryMachine, SeededRandom } from '@sectional/runtime'
import { hashAdminPassword, hashChangedPassword, parseAdminHash } from '../../src/authentication/admin-password.ts'
import { basic, MemoryNode, type Answer } from '../memory-node.ts'

const anonymous = { authorization: '' }

describe('an administrator whose password is set over HTTP', () => {
  let node: MemoryNode
  beforeEach(() => { node = new MemoryNode({ clusterSecret: 'the secret of all nodes of this cluster' }) })
  afterEach(() => node.stop())

  const setPassword = async (password: string): Promise<void> => {
    expect((await node.put('/_node/_local/_config/admins/tom', JSON.stringify(password))).status).to.equal(200)
  }
  const login = (password: string): Promise<Answer> => node.post('/_session', { name: 'tom', password }, anonymous)
  const cookieAfterLogin = async (password: string): Promise<string> =>
    (await login(password)).headers['set-cookie']!.split(';', 1)[0]!
  const whoIs = async (cookie: string): Promise<unknown> =>
    (await node.get('/_session', { ...anonymous, cookie })).json.userCtx.name

  it('has no sessions of an earlier password, also when that one is set again', async () => {
    await setPassword('one')
    const cookie = await cookieAfterLogin('one')
    expect(await whoIs(cookie)).to.equal('tom')
    await setPassword('two')
    expect(await whoIs(cookie)).to.equal(null)
    await setPassword('one')
    expect(await whoIs(cookie)).to.equal(null)
    expect(await whoIs(await cookieAfterLogin('one'))).to.equal('tom')
  })

  it('loses all sessions when the same password is set again', async () => {
    await setPassword('one')
    const cookie = await cookieAfterLogin('one')
    await setPassword('one')
    expect(await whoIs(cookie)).to.equal(null)
  })

  it('has no sessions of an administrator of the same name and password who was removed', async () => {
    await setPassword('one')
    const cookie = await cookieAfterLogin('one')
    await node.delete('/_node/_local/_config/admins/tom')
    await setPassword('one')
    expect(await whoIs(cookie)).to.equal(null)
  })

  it('is no longer locked when the same password is set again', async () => {
    await setPassword('one')
    for (let index = 0; index < 5; index++) await login(`guess ${index}`)
    expect((await login('one')).status).to.equal(403)
    await setPassword('one')
    expect((await login('one')).status).to.equal(200)
  })

  it('cannot have an empty password, with which everybody could log in', async () => {
    await setPassword('one')
    for (const body of ['""', '"   "', '"\\n"']) {
      const refused = await node.put('/_node/_local/_config/admins/tom', body)
      expect([refused.status, refused.json.error], body).to.deep.equal([400, 'bad_request'])
      expect(refused.json.reason).to.match(/empty/)
    }
    expect((await node.get('/_session', { authorization: basic('tom', '') })).status).to.equal(401)
    expect((await login('one')).status).to.equal(200)
  })

  it('cannot have a hash that is cut off, which many passwords match, or whose check takes long', async () => {
    const path = '/_node/_local/_config/admins/tom?raw=true'
    for (const derived of ['a', 'ab', 'ab'.repeat(15), `${'ab'.repeat(16)}c`, 'ab'.repeat(65)]) {
      const { status, json } = await node.put(path, JSON.stringify(`-pbkdf2:sha256-${derived},salt,10`))
      expect([status, json.error], derived).to.deep.equal([400, 'bad_request'])
    }
    for (const bytes of [16, 20, 32, 64]) {
      expect((await node.put(path, JSON.stringify(`-pbkdf2-${'ab'.repeat(bytes)},salt,10`))).status).to.equal(200)
      expect((await login('wrong')).status).to.equal(401)
    }
  })

  it('must be a text, since everybody could guess the JSON of a missing value', async () => {
    await setPassword('one')
    for (const body of ['null', 'false', '{}', '[]', '1']) {
      const refused = await node.put('/_node/_local/_config/admins/tom', body)
      expect([refused.status, refused.json.reason], body).to.deep.equal([400, 'The password of tom must be a text.'])
    }
    expect((await login('null')).status).to.equal(401)
    expect((await login('one')).status).to.equal(200)
  })
})

describe('the password of an administrator in the files of all nodes', () => {
  const hashing = (seed: number, clusterSecret = 'shared') => (
    { iterations: 1, machine: new MemoryMachine(new ManualClock()), random: new SeededRandom(seed), clusterSecret }
  )
  const saltOf = (stored: string): string => parseAdminHash(stored)!.salt

  it('has the same hash on all nodes when it was changed on one after the other', async () => {
    const [first, second] = await Promise.all([1, 2].map(async seed => {
      const file = await hashAdminPassword('anna', 'pw', hashing(seed))
      const changed = await hashChangedPassword('anna', 'other', file, hashing(seed))
      return [file, changed, await hashChangedPassword('anna', 'pw', changed, hashing(seed))]
    }))
    expect(first).to.deep.equal(second)
    expect(new Set(first!.map(saltOf)).size).to.equal(3)
  })

  it('has a random salt where no hash is replaced, and on a node without a cluster', async () => {
    const salts = await Promise.all([
      hashChangedPassword('anna', 'pw', null, hashing(1)), hashChangedPassword('anna', 'pw', null, hashing(2)),
      hashChangedPassword('anna', 'pw', '-hashed-00', hashing(3)),
      hashChangedPassword('anna', 'pw', `-hashed-${'0'.repeat(40)},salt`, hashing(4, '')),
      hashChangedPassword('anna', 'pw', `-hashed-${'0'.repeat(40)},salt`, hashing(5, '')),
    ])
    expect(new Set(salts.map(saltOf)).size).to.equal(5)
  })
})
