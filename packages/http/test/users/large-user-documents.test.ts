import { createHash } from 'node:crypto'
import { expect } from 'chai'
import { documentWrite } from '../../src/documents/document-writing.ts'
import { basic, MemoryNode, type Answer } from '../memory-node.ts'

const nobody = { authorization: '' }
const idOf = (name: string): string => `org.couchdb.user:${name}`
const userOf = (name: string): object => ({ name, type: 'user', roles: [] })
const outcome = ({ status, json }: Answer): unknown[] => [status, json.reason]

describe('large documents of users', () => {
  let node: MemoryNode
  beforeEach(async () => {
    node = new MemoryNode()
    node.configuration.put('couchdb', 'users_db_security_editable', 'true')
    node.configuration.put('chttpd_auth', 'users_db_public', 'true')
    node.configuration.put('chttpd_auth', 'public_fields', 'city')
    for (const name of ['_users', 'x%2F_users']) {
      expect((await node.put(`/${name}`)).status).to.equal(201)
      expect((await node.put(`/${name}/_security`, {})).status).to.equal(200)
    }
  })
  afterEach(() => node.stop())

  /** Returns the length of the longest text that is parsed in one piece meanwhile. */
  const longestParsed = async (work: () => Promise<unknown>): Promise<number> => {
    const { parse } = JSON
    let longest = 0
    JSON.parse = (text, ...rest) => {
      longest = Math.max(longest, String(text).length)
      return parse(text, ...rest)
    }
    try {
      await work()
    } finally {
      JSON.parse = parse
    }
    return longest
  }
  /** Writes the document of a user without the rules, as an older version did. */
  const storeUnchecked = async (name: string, members: object): Promise<void> => {
    const db = node.control.state()!.databases.get('_users')!
    const context = { requestId: 'test', signal: new AbortController().signal }
    const body = Buffer.from(JSON.stringify({ ...userOf(name), ...members }))
    const write = documentWrite(idOf(name), null, false, body)
    const [stored] = await node.coordinator.storeRevisions(
      db, [{ id: idOf(name), path: { start: 1, ids: ['ab'.repeat(16)] }, deleted: false, body, attachments: [] }],
      {}, context,
    )
    expect(stored?.kind, write.id).to.equal('written')
  }

  it('are not parsed in one piece, neither to write them nor to show public members or to log in', async () => {
    const numbers = `[${'1,'.repeat(200_000)}1]`
    const body = (roles: string): string => `{"name":"ann","type":"user","roles":${roles},"city":"Bonn","n":${numbers}}`
    const json = { ...nobody, 'content-type': 'application/json' }
    const password = { name: 'ann', password: 'pw' }
    const longest = await longestParsed(async () => {
      expect((await node.put(`/_users/${idOf('ann')}`, body('["x"]'), json)).status, 'refused').to.equal(403)
      expect((await node.put(`/_users/${idOf('ann')}`, body('[]'), json)).status).to.equal(201)
      expect((await node.put(`/x%2F_users/${idOf('ann')}`, body('[]'), json)).status).to.equal(201)
      expect((await node.get(`/_users/${idOf('ann')}`, nobody)).json).to.have.all.keys('_id', '_rev', 'city')
      expect((await node.post('/_session', password, nobody)).status).to.equal(401)
      const { _rev } = (await node.get(`/_users/${idOf('ann')}`, nobody)).json
      const withPassword = body('[]').replace('{', `{"_rev":"${_rev}","password":"pw",`)
      expect((await node.put(`/_users/${idOf('ann')}`, withPassword, { 'content-type': 'application/json' })).status)
        .to.equal(201)
      expect((await node.post('/_session', password, nobody)).status).to.equal(200)
    })
    expect(longest).to.be.lessThan(10_000)
    const { text } = await node.get(`/_users/${idOf('ann')}`)
    expect(text).to.include(numbers).and.not.to.include('"password"')
  })

  it('have a hash and a name of bounded length, because each cookie and each login costs work for them', async () => {
    const hash = { password_scheme: 'simple', password_sha: '00'.repeat(20), salt: 'ab' }
    const write = async (members: object, name = 'ann'): Promise<unknown[]> => (
      outcome(await node.put(`/_users/${idOf(name)}`, { ...userOf(name), ...hash, ...members }, nobody)))
    for (const name of ['password_scheme', 'pbkdf2_prf', 'salt', 'derived_key', 'password_sha']) {
      const reason = `${name} may have at most 1024 characters.`
      expect(await write({ [name]: 's'.repeat(1025) })).to.deep.equal([403, reason])
    }
    expect(await write({ roles: ['r'.repeat(1_048_576)] })).to.deep.equal([
      403, 'name, roles and hash have more than 1048576 bytes of JSON.',
    ])
    expect(await write({}, 'n'.repeat(4097))).to.deep.equal([403, 'Username may have at most 4096 bytes.'])
    expect(await write({ salt: 's'.repeat(1024) })).to.deep.equal([201, undefined])
    expect(await write({}, 'n'.repeat(4096))).to.deep.equal([201, undefined])
  })

  it('that were written without these bounds are accounts with which nobody can log in', async () => {
    const salt = 's'.repeat(1025)
    const hash = { password_scheme: 'simple', salt, password_sha: createHash('sha1').update(`pw${salt}`).digest('hex') }
    await storeUnchecked('ann', hash)
    await storeUnchecked('bob', { roles: ['r'.repeat(1_048_576)] })
    for (const name of ['ann', 'bob']) {
      const answer = await node.get('/_session', { authorization: basic(name, 'pw') })
      expect(outcome(answer)).to.deep.equal([401, 'Name or password is incorrect.'])
    }
  })
})
