import { pbkdf2Sync } from 'node:crypto'
import { expect } from 'chai'
import { RefusalWork } from '../../src/authentication/refusal-work.ts'
import { documentWrite } from '../../src/documents/document-writing.ts'
import { basic, MemoryNode, type Answer } from '../memory-node.ts'

const idOf = (name: string): string => `org.couchdb.user:${name}`
const wrong = [401, 'Name or password is incorrect.']
const locked = [403, 'Account is temporarily locked due to multiple authentication failures']
const right = [200, undefined]

interface Choice {
  readonly iterations?: number; readonly digest?: string; readonly bytes?: number; readonly totp?: object
}

describe('refusals of passwords', () => {
  let node: MemoryNode
  let reads: number
  let password: number
  beforeEach(async () => {
    reads = 0
    password = 0
    node = new MemoryNode({
      wrap: coordinator => {
        const { openDocument } = coordinator
        coordinator.openDocument = (...parameters) => {
          reads++
          return openDocument(...parameters)
        }
        return coordinator
      },
    })
    await node.put('/_users')
  })
  afterEach(() => node.stop())

  /** Writes the document of a user as another node does, of which this one learns nothing. */
  const elsewhere = async (
    name: string, secret: string, { iterations = 1, digest = 'sha256', bytes = 32, totp }: Choice = {},
  ): Promise<void> => {
    const db = node.control.state()!.databases.get('_users')!
    const context = { requestId: 'test', signal: new AbortController().signal }
    const opened = await node.coordinator.openDocument(db, idOf(name), {}, context)
    const salt = `salt of ${secret}`
    const body = Buffer.from(JSON.stringify({
      type: 'user', name, roles: [], totp, password_scheme: 'pbkdf2', pbkdf2_prf: digest, salt, iterations,
      derived_key: pbkdf2Sync(secret, salt, iterations, bytes, digest).toString('hex'),
    }))
    const write = documentWrite(idOf(name), opened?.leaves[0]!.revision ?? null, false, body)
    const [outcome] = await node.coordinator.updateDocuments(db, [write], {}, context)
    expect(outcome?.kind).to.equal('written')
    await node.clock.advance(1)
  }
  const outcome = ({ status, json }: Answer): unknown[] => [status, json.reason]
  const byBasic = async (name: string, secret: string): Promise<unknown[]> => (
    outcome(await node.get('/_session', { authorization: basic(name, secret) })))
  const byForm = async (name: string, secret: string): Promise<unknown[]> => (
    outcome(await node.post('/_session', { name, password: secret }, { authorization: '' })))
  const readsOf = async (work: () => Promise<unknown>): Promise<number> => {
    const before = reads
    await work()
    return reads - before
  }

  describe('after another node has changed the account', () => {
    for (const [way, login] of Object.entries({ 'Basic credentials': byBasic, 'a form': byForm })) {
      it(`are confirmed, so that a new password is accepted at once: ${way}`, async () => {
        await elsewhere('ann', 'old')
        expect(await login('ann', 'old')).to.deep.equal(right)
        await elsewhere('ann', 'new')
        expect(await login('ann', 'new')).to.deep.equal(right)
        expect(await login('ann', 'old')).to.deep.equal(wrong)
      })

      it(`are confirmed, so that a new user can log in at once: ${way}`, async () => {
        expect(await login('ann', 'new')).to.deep.equal(wrong)
        await elsewhere('ann', 'new')
        expect(await login('ann', 'new'), 'whose refusal is cached').to.deep.equal(right)
      })
    }

    it('do not count for the lockout', async () => {
      for (let index = 0; index < 10; index++) {
        await elsewhere('ann', `password ${index}`)
        expect(await byBasic('ann', `password ${index}`)).to.deep.equal(right)
        await node.clock.advance(500)
      }
      for (let index = 0; index < 5; index++) expect(await byBasic('ann', `guess ${index}`)).to.deep.equal(wrong)
      expect(await byBasic('ann', 'password 9')).to.deep.equal(locked)
    })

    it('are confirmed when a second factor was removed', async () => {
      const totp = { key: 'GEZDGNBVGY3TQOJQ' }
      for (const login of [byBasic, byForm]) {
        await elsewhere('ann', 'pw', { totp })
        await node.clock.advance(3_000)
        expect(await login('ann', 'pw')).to.deep.equal(wrong)
        await elsewhere('ann', 'pw')
        await node.clock.advance(500)
        expect(await login('ann', 'pw')).to.deep.equal(right)
      }
    })

    it('are confirmed for sessions that began there', async () => {
      await elsewhere('ann', 'old')
      expect(await byBasic('ann', 'old')).to.deep.equal(right)
      await elsewhere('ann', 'new')
      const other = new MemoryNode()
      node.configuration.put('chttpd_auth', 'secret', 'shared')
      other.configuration.put('chttpd_auth', 'secret', 'shared')
      await other.put(`/_users/${idOf('ann')}`, (({ _rev, ...members }) => members)(
        (await node.get(`/_users/${idOf('ann')}`)).json,
      ))
      const login = await other.post('/_session', { name: 'ann', password: 'new' }, { authorization: '' })
      await other.stop()
      const cookie = login.headers['set-cookie']!.split(';', 1)[0]!
      expect((await node.get('/_session', { authorization: '', cookie })).json.userCtx.name).to.equal('ann')
      const forged = cookie.slice(0, -4)
      const forgeries = async (): Promise<void> => {
        for (let index = 0; index < 10; index++) {
          const { json } = await node.get('/_session', { authorization: '', cookie: forged + index })
          expect(json.userCtx.name).to.equal(null)
        }
      }
      await node.clock.advance(500)
      expect(await readsOf(forgeries)).to.equal(1)
    })
  })

  it('cost one reading of the account in half a second at most, and none while the client is locked', async () => {
    await elsewhere('ann', 'right')
    await byBasic('ann', 'right')
    node.configuration.put('chttpd_auth_lockout', 'mode', 'off')
    for (const name of ['ann', 'admin', 'nobody']) {
      await byBasic(name, 'first')
      await node.clock.advance(500)
      expect(await readsOf(async () => {
        for (let index = 0; index < 20; index++) {
          expect(await byBasic(name, `guess ${index % 3}`)).to.deep.equal(wrong)
          await node.clock.advance(20)
        }
      }), name).to.equal(1)
    }
    node.configuration.put('chttpd_auth_lockout', 'mode', 'enforce')
    for (let index = 0; index < 5; index++) await byBasic('ann', 'guess')
    await node.clock.advance(600)
    expect(await readsOf(async () => {
      expect(await byBasic('ann', 'guess')).to.deep.equal(locked)
      expect(await byBasic('ann', 'another')).to.deep.equal(locked)
    })).to.equal(0)
  })

  it('do not show that a document has conflicts, of which only those learn who know the password', async () => {
    await elsewhere('ann', 'right')
    const { json } = await node.get(`/_users/${idOf('ann')}`)
    await node.post('/_users/_bulk_docs', { new_edits: false, docs: [{ ...json, _rev: '1-00' }] })
    const reason = 'User document conflicts must be resolved before the document is used for authentication purposes.'
    for (const login of [byBasic, byForm]) {
      expect(await login('ann', 'right')).to.deep.equal([401, reason])
      expect(await login('ann', 'wrong')).to.deep.equal(wrong)
    }
    for (let index = 0; index < 3; index++) expect(await byBasic('ann', `guess ${index}`)).to.deep.equal(wrong)
    expect(await byBasic('ann', 'right')).to.deep.equal(locked)
  })

  it('stay refusals, and count, when the account cannot be read again', async () => {
    await elsewhere('ann', 'right')
    expect(await byBasic('ann', 'right')).to.deep.equal(right)
    node.down.add('node1@127.0.0.1')
    for (let index = 0; index < 5; index++) {
      expect(await node.during(byBasic('ann', `guess ${index}`), 1_000)).to.deep.equal(wrong)
    }
    expect(await byBasic('ann', 'right')).to.deep.equal(locked)
  })

  describe('do the same work', () => {
    const rounds = async (name: string): Promise<number> => {
      const before = node.machine.pbkdf2Rounds
      expect(await byBasic(name, `guess ${password++}`)).to.deep.equal(wrong)
      return node.machine.pbkdf2Rounds - before
    }

    it('for unknown names as for hashes that are costlier than new ones', async () => {
      const derived = pbkdf2Sync('x', 'salt', 1, 32, 'sha256').toString('hex')
      node.configuration.put('admins', 'chief', `-pbkdf2:sha256-${derived},salt,70`)
      node.configuration.put('admins', 'never', `-pbkdf2:sha256-${derived},salt,999999999`)
      expect(await rounds('nobody'), 'at once').to.equal(70)
      await elsewhere('cheap', 'x', { iterations: 2 })
      await elsewhere('ann', 'x', { iterations: 90 })
      await elsewhere('bob', 'x', { iterations: 40, digest: 'sha512', bytes: 64 })
      await elsewhere('eve', 'x', { iterations: 10, digest: 'sha1', bytes: 64 })
      for (const name of ['ann', 'bob', 'eve']) expect(await byForm(name, 'x')).to.deep.equal(right)
      for (const name of ['nobody', 'cheap', 'ann', 'bob', 'eve', 'admin', 'chief']) {
        expect(await rounds(name), name).to.equal(90 + 40 + 4 * 10)
      }
    })

    it('and forget a hash that was not read for hours', async () => {
      await elsewhere('ann', 'x', { iterations: 90 })
      await byForm('ann', 'x')
      for (let hours = 0; hours < 2; hours++) {
        await node.clock.advance(3_500_000)
        expect(await rounds('nobody')).to.equal(90)
      }
      await node.clock.advance(3_700_000)
      expect(await rounds('nobody')).to.equal(1)
    })

    it('within bounds', async () => {
      await elsewhere('ann', 'x')
      node.configuration.put('chttpd_auth', 'max_iterations', '50')
      await elsewhere('bob', 'x', { iterations: 60 })
      await byForm('bob', 'x')
      expect(await rounds('nobody'), 'hashes that are refused').to.equal(1)
    })

    it('with a million rounds of each digest for hashes of users at most', () => {
      const { configuration } = node
      const work = new RefusalWork({ clock: node.clock, configuration, options: configuration.options.values })
      for (const digest of ['sha1', 'sha512'] as const) {
        const derived = '00'.repeat(64)
        work.note({ scheme: 'pbkdf2', digest, derived, salt: 's', iterations: 5_000_000 })
      }
      expect([...work.missing(null)]).to.deep.equal([['sha1', 1_000_000], ['sha256', 1], ['sha512', 1_000_000]])
    })
  })
})
