import { expect } from 'chai'
import { basic, MemoryNode, type Answer } from '../memory-node.ts'

const locked = [403, 'Account is temporarily locked due to multiple authentication failures']
const wrong = [401, 'Name or password is incorrect.']
const right = [200, undefined]
const ann = { name: 'ann', password: 'pw ann' }

describe('the lockout', () => {
  let node: MemoryNode
  beforeEach(async () => {
    node = new MemoryNode()
    node.configuration.put('chttpd_auth', 'iterations', '2')
    node.configuration.put('chttpd', 'peer_header', 'X-Forwarded-For')
    await setPassword(ann)
  })
  afterEach(() => node.stop())

  const setPassword = async ({ name, password }: typeof ann): Promise<void> => {
    const path = `/_users/org.couchdb.user:${name}`
    const { _rev } = (await node.get(path)).json
    const answer = await node.put(path, { ...(_rev && { _rev }), name, type: 'user', roles: [], password })
    expect(answer.status).to.equal(201)
  }
  const outcome = ({ status, json }: Answer): unknown[] => [status, json.reason]
  const byBasic = async (password: string, address = '10.0.0.1', name = 'ann'): Promise<unknown[]> => outcome(
    await node.get('/_session', { authorization: basic(name, password), 'x-forwarded-for': address }),
  )
  const byForm = async (password: string, address = '10.0.0.1', name = 'ann'): Promise<unknown[]> => outcome(
    await node.post('/_session', { name, password }, { authorization: '', 'x-forwarded-for': address }),
  )
  const failTimes = async (count: number, address = '10.0.0.1'): Promise<void> => {
    for (let index = 0; index < count; index++) {
      expect(await (index % 2 === 0 ? byBasic('guess', address) : byForm(`guess ${index}`, address)))
        .to.deep.equal(wrong)
    }
  }

  it('refuses a client after five wrong passwords, also with the right one', async () => {
    expect(await byBasic(ann.password)).to.deep.equal(right)
    await failTimes(5)
    expect(await byBasic('guess')).to.deep.equal(locked)
    expect(await byBasic(ann.password)).to.deep.equal(locked)
    expect(await byForm(ann.password)).to.deep.equal(locked)
  })

  it('says when a client may try again', async () => {
    await failTimes(5)
    await node.clock.advance(100_500)
    const refused = async (password: string): Promise<string | undefined> => (await node.get('/_session', {
      'authorization': basic('ann', password), 'x-forwarded-for': '10.0.0.1',
    })).headers['retry-after']
    expect([await refused('guess'), await refused(ann.password)]).to.deep.equal(['200', '200'])
    await node.clock.advance(200_000)
    expect(await byBasic(ann.password)).to.deep.equal(right)
  })

  it('counts the connections of a client behind a proxy together, whatever their ports', async () => {
    for (let port = 1; port <= 5; port++) expect(await byBasic('guess', `10.0.3.1:${port}`)).to.deep.equal(wrong)
    expect(await byBasic(ann.password, '10.0.3.1:6')).to.deep.equal(locked)
    expect(await byBasic(ann.password, '10.0.3.1')).to.deep.equal(locked)
    for (let index = 1; index <= 5; index++) expect(await byBasic('guess', `garbage${index}`)).to.deep.equal(wrong)
    expect(await byBasic(ann.password, 'garbage6')).to.deep.equal(locked)
  })

  it('does not concern other clients and other accounts', async () => {
    await setPassword({ name: 'bob', password: 'pw bob' })
    await failTimes(5)
    expect(await byBasic(ann.password, '10.0.0.2')).to.deep.equal(right)
    expect(await byBasic('pw bob', '10.0.0.1', 'bob')).to.deep.equal(right)
  })

  it('counts the addresses of an IPv6 network together, since one client can use all of them', async () => {
    for (let host = 1; host <= 5; host++) expect(await byBasic('guess', `2001:db8::${host}`)).to.deep.equal(wrong)
    expect(await byBasic('guess', '2001:db8::6')).to.deep.equal(locked)
    expect(await byForm(ann.password, '2001:db8::7')).to.deep.equal(locked)
    expect(await byBasic(ann.password, '2001:db8:0:1::1')).to.deep.equal(right)
  })

  it('of a network does not concern its addresses from which the user has logged in before', async () => {
    for (const address of ['2001:db8::77', '2001:db8::78']) {
      expect(await byBasic(ann.password, address), 'the second one is cached').to.deep.equal(right)
    }
    for (let host = 1; host <= 5; host++) await byForm(`guess ${host}`, `2001:db8::${host}`)
    expect(await byBasic(ann.password, '2001:db8::7')).to.deep.equal(locked)
    expect(await byBasic(ann.password, '2001:db8::78')).to.deep.equal(right)
    for (let index = 0; index < 5; index++) expect(await byForm(`x${index}`, '2001:db8::77')).to.deep.equal(wrong)
    expect(await byForm(ann.password, '2001:db8::77'), 'counted for its own guesses').to.deep.equal(locked)
    expect(await byBasic(ann.password, '2001:db8::78')).to.deep.equal(right)
  })

  it('concerns unknown names, so that it does not show which names exist', async () => {
    for (let index = 0; index < 5; index++) expect(await byBasic('x', '10.0.0.1', 'nobody')).to.deep.equal(wrong)
    expect(await byForm('x', '10.0.0.1', 'nobody')).to.deep.equal(locked)
  })

  it('ends with its time, which begins with the first wrong password', async () => {
    await failTimes(4)
    await node.clock.advance(200_000)
    expect(await byBasic('guess')).to.deep.equal(wrong)
    expect(await byBasic(ann.password)).to.deep.equal(locked)
    await node.clock.advance(100_000)
    expect(await byBasic(ann.password)).to.deep.equal(right)
  })

  it('is not put off by a right password, and ended by a new one', async () => {
    await failTimes(4)
    expect(await byBasic(ann.password)).to.deep.equal(right)
    expect(await byForm('guess')).to.deep.equal(wrong)
    expect(await byBasic(ann.password)).to.deep.equal(locked)
    await setPassword({ name: 'ann', password: 'another' })
    expect(await byBasic('another')).to.deep.equal(right)
  })

  it('leaves open sessions alone', async () => {
    const login = await node.post('/_session', ann, { authorization: '', 'x-forwarded-for': '10.0.0.1' })
    const cookie = login.headers['set-cookie']!.split(';', 1)[0]!
    await failTimes(5)
    const session = await node.get('/_session', { authorization: '', cookie, 'x-forwarded-for': '10.0.0.1' })
    expect(session.json.userCtx.name).to.equal('ann')
  })

  it('counts guesses that are checked at the same time', async () => {
    const guesses = await Promise.all(Array.from({ length: 20 }, (_, index) => byBasic(`guess ${index}`)))
    expect(guesses.filter(([status]) => status === 401)).to.have.length(5)
    expect(guesses.filter(([status]) => status === 403)).to.have.length(15)
  })

  it('lets many requests with the right password come at the same time', async () => {
    await failTimes(4)
    const answers = await Promise.all(Array.from({ length: 20 }, () => byBasic(ann.password)))
    expect(answers.filter(([status]) => status === 200)).to.have.length(20)
  })

  it('logs the address and the name, and never the password', async () => {
    await failTimes(5)
    const lines = node.log.lines.filter(({ message }) => message.includes('locked'))
    expect(lines).to.have.length(1)
    expect(lines[0]).to.deep.include({ level: 'warn' })
    expect(JSON.stringify(lines)).to.include('10.0.0.1').and.to.include('ann').and.not.to.include('guess')
  })

  it('only warns, or does nothing, when it is told so', async () => {
    node.configuration.put('chttpd_auth_lockout', 'mode', 'off')
    await failTimes(6)
    node.configuration.put('chttpd_auth_lockout', 'mode', 'warn')
    await failTimes(6)
    expect(await byBasic(ann.password)).to.deep.equal(right)
    node.configuration.put('chttpd_auth_lockout', 'mode', 'enforce')
    expect(await byBasic(ann.password)).to.deep.equal(locked)
  })

  it('is not ended by failures of the same client for many other names, nor of others', async () => {
    await node.stop()
    node = new MemoryNode({ http: { lockoutEntriesMax: 10, peerHeader: 'x-forwarded-for', passwordIterations: 2 } })
    await setPassword(ann)
    await failTimes(3, '10.0.0.2')
    await failTimes(5)
    for (let index = 0; index < 30; index++) {
      expect(await byBasic('x', '10.0.0.1', `name${index}`)).to.deep.equal(wrong)
    }
    expect(await byBasic(ann.password)).to.deep.equal(locked)
    await failTimes(2, '10.0.0.2')
    expect(await byBasic(ann.password, '10.0.0.2')).to.deep.equal(locked)
  })

  it('begins for a name of a client all whose other names are locked', async () => {
    await node.stop()
    node = new MemoryNode({ http: { lockoutEntriesMax: 2, peerHeader: 'x-forwarded-for', passwordIterations: 2 } })
    for (const name of ['a', 'b', 'c']) {
      for (let index = 0; index < 5; index++) expect(await byBasic('x', '10.0.0.1', name)).to.deep.equal(wrong)
      expect(await byBasic('x', '10.0.0.1', name)).to.deep.equal(locked)
    }
  })

  it('forgets the pairs of address and account that were not used for the longest time', async () => {
    await node.stop()
    node = new MemoryNode({ http: { lockoutEntriesMax: 2, peerHeader: 'x-forwarded-for', passwordIterations: 2 } })
    await setPassword(ann)
    await failTimes(5)
    await failTimes(1, '10.0.0.2')
    expect(await byBasic(ann.password)).to.deep.equal(locked)
    await failTimes(1, '10.0.0.3')
    await failTimes(1, '10.0.0.4')
    expect(await byBasic(ann.password)).to.deep.equal(right)
  })
})
