import type { DatabaseRecord } from '@sectional/cluster'
import { ManualClock } from '@sectional/runtime'
import { expect } from 'chai'
import { FeedUsers } from '../../src/services/feed-users.ts'
import type { OpenFeed } from '../../src/services/open-feed.ts'
import type { User } from '../../src/request/user.ts'
import { basic, MemoryNode, type Answer } from '../memory-node.ts'
import { secret, signToken } from '../tokens/token-signer.ts'

/** Time in which a change takes effect: that of an examination, and that of an account in memory. */
const effectMs = 7_000

describe('feeds that are open', () => {
  const ann = '/_users/org.couchdb.user:ann'
  const document = { type: 'user', name: 'ann', roles: ['reader', 'other'], password: 'pw' }
  const feedPath = '/db/_changes?feed=continuous&heartbeat=60000'
  let node: MemoryNode
  let rev: string
  beforeEach(async () => {
    node = new MemoryNode()
    await node.put('/db?q=1')
    await node.put('/db/_security', { members: { roles: ['reader'] } })
    rev = (await node.put(ann, document)).json.rev
  })
  afterEach(() => node.stop())

  /** Makes a change while a feed is open, and returns whether the feed has ended well because of it. */
  async function endsAfter(feed: Promise<Answer>, change: () => Promise<unknown> | unknown): Promise<boolean> {
    let answer: Answer | undefined
    void feed.then(given => { answer = given })
    await node.clock.advance(effectMs)
    expect(answer?.text, 'before the change').to.equal(undefined)
    await change()
    await node.clock.advance(effectMs)
    if (answer !== undefined) expect([answer.status, answer.cut]).to.deep.equal([200, false])
    return answer !== undefined
  }
  const byPassword = { authorization: basic('ann', 'pw') }
  const byCookie = async (): Promise<Record<string, string>> => {
    const { headers } = await node.post('/_session', { name: 'ann', password: 'pw' }, { authorization: '' })
    return { authorization: '', cookie: headers['set-cookie']!.split(';')[0]! }
  }
  const edit = async (change: object): Promise<void> => {
    const stored = (await node.get(ann)).json
    rev = (await node.put(ann, { ...stored, ...change })).json.rev
  }

  for (const kind of ['continuous', 'eventsource', 'longpoll']) {
    it(`end when their user is deleted (${kind})`, async () => {
      const feed = node.get(`/db/_changes?feed=${kind}&since=now&heartbeat=60000`, byPassword)
      expect(await endsAfter(feed, () => node.delete(`${ann}?rev=${rev}`))).to.equal(true)
    })
  }

  for (const [kind, headers] of [['Basic', async () => byPassword], ['a session', byCookie]] as const) {
    it(`end when the password is changed (${kind})`, async () => {
      const feed = node.get(feedPath, await headers())
      expect(await endsAfter(feed, () => edit({ password: 'other' }))).to.equal(true)
    })
  }

  it('end when the roles do not suffice any more, and continue with those that do', async () => {
    const feed = node.get(feedPath, byPassword)
    expect(await endsAfter(feed, () => edit({ roles: ['reader'], city: 'Bonn' }))).to.equal(false)
    expect(await endsAfter(feed, () => edit({ roles: ['other'] }))).to.equal(true)
  })

  it('end when the database of users is deleted', async () => {
    expect(await endsAfter(node.get(feedPath, byPassword), () => node.delete('/_users'))).to.equal(true)
  })

  it('end when their administrator is removed, or has another password', async () => {
    const base = '/_node/_local/_config/admins/bert'
    for (const change of [() => node.delete(base), () => node.put(base, '"other"')]) {
      await node.put(base, '"pw"')
      const paths = [feedPath, ...['/_db_updates', '/_users/_changes']
        .map(path => `${path}?feed=longpoll&since=now&heartbeat=60000`)]
      const feeds = paths.map(path => node.get(path, { authorization: basic('bert', 'pw') }))
      const all = Promise.all(feeds).then(answers => ({ ...answers[0]!, cut: answers.some(({ cut }) => cut) }))
      expect(await endsAfter(all, change)).to.equal(true)
    }
  })

  it('end when their token has expired, and when its key is removed', async () => {
    node.configuration.put('chttpd', 'authentication_handlers', 'jwt, default')
    node.configuration.put('jwt_keys', 'hmac:h', secret.toString('base64'))
    const open = async (seconds: number): Promise<{ readonly feed: Promise<Answer> }> => {
      const claims = { sub: 'carl', '_service.roles': ['reader'], exp: node.clock.now() / 1000 + seconds }
      const authorization = `Bearer ${signToken({ alg: 'HS256', kid: 'h' }, claims, secret)}`
      // The verification takes time of a thread, which the clock of the test does not know.
      expect((await node.get('/_session', { authorization })).json.userCtx.name).to.equal('carl')
      return { feed: node.get(feedPath, { authorization }) }
    }
    const removeKey = (): Promise<void> => node.configuration.delete('jwt_keys', 'hmac:h', { persist: true })
    expect(await endsAfter((await open(effectMs / 1000 + 1)).feed, () => {})).to.equal(true)
    expect(await endsAfter((await open(3600)).feed, removeKey)).to.equal(true)
  })

  for (const [section, key, value] of [
    ['chttpd', 'require_valid_user', 'true'], ['chttpd', 'require_valid_user_except_for_up', 'true'],
    ['chttpd', 'authentication_handlers', 'cookie, default'], ['chttpd_auth', 'proxy_use_secret', 'true'],
  ] as const) {
    it(`end when ${section}/${key} is changed, which decides whom the node admits`, async () => {
      node.configuration.put('chttpd', 'authentication_handlers', 'proxy, default')
      await node.put('/open?q=1')
      await node.put('/open/_security', {})
      const ofProxy = { 'authorization': '', 'x-auth-service-username': 'carl', 'x-auth-service-roles': 'reader' }
      const anonymousPath = '/open/_changes?feed=longpoll&heartbeat=60000&since=now'
      const feeds = [node.get(feedPath, ofProxy), node.get(anonymousPath, { authorization: '' })]
      node.configuration.put('uuids', 'max_count', '5')
      const both = Promise.all(feeds).then(([first]) => first!)
      expect(await endsAfter(both, () => node.configuration.put(section, key, value))).to.equal(true)
    })
  }

  it('continue when the cookie of their session has expired, which a feed cannot renew', async () => {
    const feed = node.get(feedPath, await byCookie())
    expect(await endsAfter(feed, () => node.clock.advance(700_000))).to.equal(false)
  })

  it('continue while the account of their user cannot be read', async () => {
    const feed = node.get(feedPath, byPassword)
    expect(await endsAfter(feed, () => { node.down.add('node1@127.0.0.1') })).to.equal(false)
  })
})

describe('the users of feeds', () => {
  const database = { name: 'db', security: {} } as DatabaseRecord
  class TestFeed implements OpenFeed {
    readonly database = database
    readonly user: User
    readonly authorization = undefined
    ended = 0
    constructor(name: string) { this.user = { name, roles: [], admin: false, salt: `salt of ${name}` } }
    end(): void { this.ended++ }
  }

  it('are examined some at a time and each once a round, however many feeds they have', async () => {
    const clock = new ManualClock()
    const examined: (string | null)[] = []
    const users = new FeedUsers(clock, { state: () => null }, async ({ user }) => {
      examined.push(user.name)
      return user.name === 'user 7' ? null : user
    })
    const feeds = Array.from({ length: 2_000 }, (_, at) => new TestFeed(`user ${at % 500}`))
    for (const feed of feeds) users.add(feed)
    await clock.advance(3_000)
    expect(examined.length).to.equal(300)
    await clock.advance(3_000)
    expect(new Set(examined).size).to.equal(500)
    expect(feeds.filter(({ ended }) => ended > 0).map(({ user }) => user.name)).to.deep.equal(Array(4).fill('user 7'))
    for (const feed of feeds) users.delete(feed)
    await clock.advance(60_000)
    expect(examined.length).to.equal(600)
  })
})
