import { expect } from 'chai'
import { ApiError } from '@sectional/core'
import { ControlWorld } from './control-world.ts'

const options = { q: 4, n: 3, partitioned: false }

describe('the control plane', () => {
  let world: ControlWorld
  beforeEach(async () => {
    world = new ControlWorld()
    await world.form()
  })
  afterEach(async () => {
    await world.stopAll()
    expect(world.fatal).to.deep.equal([])
    await world.clock.advance(1)
    expect(world.clock.pendingTimers).to.equal(0)
  })

  const failure = async (work: Promise<unknown>): Promise<ApiError> => {
    const error = await world.during(work).then(() => null, (reason: unknown) => reason)
    if (!(error instanceof ApiError)) throw new Error(`expected an ApiError, not ${String(error)}`)
    return error
  }

  it('shows a created database on every connected node as soon as it is created', async () => {
    for (const [at, name] of world.running().entries()) {
      await world.during(world.plane(name).createDatabase(`db${at}`, options))
      for (const other of world.running()) {
        expect(world.plane(other).state()?.databases.get(`db${at}`)?.shards.length, other).to.equal(4)
      }
    }
  })

  it('answers a creation only when a slow member, too, shows the database', async () => {
    const leader = await world.leader()
    const slow = world.running().find(name => name !== leader)!
    world.disk(slow).setFaults({ syncDelayMs: () => 300 })
    await world.during(world.plane(leader).createDatabase('db', options))
    expect(world.plane(slow).state()?.databases.has('db')).to.equal(true)
  })

  it('decides a race for one name: exactly one creator wins', async () => {
    const outcomes = await world.during(
      Promise.allSettled(world.running().map(name => world.plane(name).createDatabase('race', options))),
    )
    expect(outcomes.filter(outcome => outcome.status === 'fulfilled').length).to.equal(1)
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') expect((outcome.reason as ApiError).error).to.equal('file_exists')
    }
  })

  it('gives a created name a new incarnation each time', async () => {
    const first = await world.during(world.plane('n1').createDatabase('db', options))
    expect(await world.during(world.plane('n2').deleteDatabase('db'))).to.equal('deleted')
    expect(world.plane('n3').state()?.databases.has('db')).to.equal(false)
    const second = await world.during(world.plane('n3').createDatabase('db', options))
    expect(second.incarnation).not.to.equal(first.incarnation)
    expect((await failure(world.plane('n1').deleteDatabase('nothing'))).status).to.equal(404)
  })

  it('keeps security, options and settings', async () => {
    const { security } = await world.during(world.plane('n1').createDatabase('db', options))
    expect(security).to.deep.equal({ members: { roles: ['_admin'] }, admins: { roles: ['_admin'] } })
    await world.during(world.plane('n2').setSecurity('db', { admins: { names: ['ann'] } }))
    await world.during(world.plane('n3').setDatabaseOption('db', { revsLimit: 10 }))
    await world.during(world.plane('n1').setSetting('session', 'secret', 'x'))
    for (const name of world.running()) {
      const record = world.plane(name).state()?.databases.get('db')
      expect(record?.security).to.deep.equal({ admins: { names: ['ann'] } })
      expect(record?.revsLimit).to.equal(10)
      expect(world.plane(name).state()?.settings['session/secret']).to.equal('x')
    }
    await world.during(world.plane('n1').setSetting('session', 'secret', null))
    expect(world.plane('n2').state()?.settings).to.deep.equal({})
  })

  it('refuses changes on the minority side with a plain reason, and serves what it knows', async () => {
    await world.during(world.plane('n1').createDatabase('db', options))
    const leader = await world.leader()
    const others = world.running().filter(name => name !== leader)
    world.hub.partition([leader], others)
    const error = await failure(world.plane(leader).createDatabase('db2', options))
    expect(error.status).to.equal(503)
    expect(error.reason).to.match(/no majority of its voters \(n1, n2, n3\) answers/)
    expect(error.headers['Retry-After']).to.equal('5')
    expect(world.plane(leader).state()?.databases.has('db')).to.equal(true)
    await world.leader(others)
    await world.during(world.plane(others[0] ?? '').createDatabase('db3', options))
    world.hub.heal()
    await world.until(() => world.plane(leader).state()?.databases.has('db3') === true, 'the old leader follows')
  })

  it('keeps a deletion promised on the minority side, over a restart, and applies it when healed', async () => {
    const record = await world.during(world.plane('n1').createDatabase('db', options))
    world.hub.partition(['n3'], ['n1', 'n2'])
    expect(await world.during(world.plane('n3').deleteDatabase('db'))).to.equal('accepted')
    expect(world.plane('n3').state()?.databases.has('db')).to.equal(false)
    expect(world.plane('n3').appliedState()?.databases.has('db')).to.equal(true)
    expect(world.plane('n1').state()?.databases.get('db')?.incarnation).to.equal(record.incarnation)
    await world.crash('n3')
    await world.start('n3')
    expect(world.plane('n3').state()?.databases.has('db')).to.equal(false)
    world.hub.heal()
    await world.until(() => world.plane('n1').state()?.databases.has('db') === false, 'the deletion is applied')
    await world.during(world.plane('n3').createDatabase('db', options))
    await world.advance(10_000)
    expect(world.plane('n1').state()?.databases.has('db')).to.equal(true)
  })

  it('shows a database that was created again while the promise to delete the earlier one is still on the disk',
    async () => {
      await world.during(world.plane('n1').createDatabase('db', options))
      world.hub.partition(['n3'], ['n1', 'n2'])
      expect(await world.during(world.plane('n3').deleteDatabase('db'))).to.equal('accepted')
      await world.leader(['n1', 'n2'])
      await world.during(world.plane('n1').deleteDatabase('db'))
      const { incarnation } = await world.during(world.plane('n1').createDatabase('db', options))
      world.disk('n3').setFaults({ syncDelayMs: () => 300 })
      world.hub.heal()
      await world.until(
        () => world.plane('n3').appliedState()?.databases.get('db')?.incarnation === incarnation, 'n3 has applied it')
      expect(world.plane('n3').state()?.databases.get('db')?.incarnation).to.equal(incarnation)
      world.disk('n3').setFaults({})
    })

  it('does not let a promised deletion hit a database that was created again meanwhile', async () => {
    await world.during(world.plane('n1').createDatabase('db', options))
    world.hub.partition(['n3'], ['n1', 'n2'])
    expect(await world.during(world.plane('n3').deleteDatabase('db'))).to.equal('accepted')
    await world.leader(['n1', 'n2'])
    await world.during(world.plane('n1').deleteDatabase('db'))
    const again = await world.during(world.plane('n1').createDatabase('db', options))
    world.hub.heal()
    await world.until(
      () => world.plane('n3').state()?.databases.get('db')?.incarnation === again.incarnation,
      'n3 shows the new database',
    )
    await world.advance(10_000)
    expect(world.plane('n2').state()?.databases.get('db')?.incarnation).to.equal(again.incarnation)
  })

  it('goes on when the leader is cut off in the middle of changes', async () => {
    const leader = await world.leader()
    const follower = world.running().find(name => name !== leader) ?? ''
    const creation = world.plane(follower).createDatabase('db', options)
    world.hub.partition([leader], world.running().filter(name => name !== leader))
    await world.during(creation)
    world.hub.heal()
    await world.until(
      () => world.running().every(name => world.plane(name).state()?.databases.has('db')), 'all know the database',
    )
  })

  it('finds a database that it has missed when asked to confirm its absence', async () => {
    const leader = await world.leader()
    const [late = '', other = ''] = world.running().filter(name => name !== leader)
    world.hub.silence(leader, late)
    await world.during(world.plane(other).createDatabase('db', options))
    expect(world.plane(late).state()?.databases.has('db')).to.equal(false)
    world.hub.heal()
    const found = await world.during(world.plane(late).confirmAbsent('db'))
    expect(found?.name).to.equal('db')
    expect(await world.during(world.plane(late).confirmAbsent('nothing'))).to.equal(undefined)
  })

  it('answers a flood of unknown names with few questions to the leader', async () => {
    const leader = await world.leader()
    const follower = world.plane(world.running().find(name => name !== leader) ?? '')
    const before = world.clock.monotonic()
    await world.during(Promise.all(Array.from({ length: 500 }, (_, at) => follower.confirmAbsent(`nothing${at}`))))
    expect(world.clock.monotonic() - before).to.be.lessThan(300)
  })

  it('loses nothing that was answered when all nodes lose power at once', async () => {
    for (let at = 0; at < 5; at += 1) await world.during(world.plane('n2').createDatabase(`db${at}`, options))
    for (const name of world.running()) await world.crash(name)
    for (const name of ['n1', 'n2', 'n3']) await world.start(name)
    await world.leader()
    await world.until(
      () => world.running().every(name => world.plane(name).state()?.databases.size === 5), 'all five are there',
    )
  })

  it('refuses what breaks the limits before the log', async () => {
    expect((await failure(world.plane('n1')
      .createDatabase('db', { q: 0, n: 3, partitioned: false }))).status).to.equal(400)
  })

  it('asks members, and gives the reason when it cannot', async () => {
    expect(await world.during(world.plane('n1').ask('n2', 'stats', null))).to.equal('n2 answers stats')
    expect(await world.plane('n1').ask('n1', 'system', null)).to.equal('n1 answers system')
    expect((await failure(world.plane('n1').ask('constructor', 'stats', null))).error).to.equal('not_found')
    await world.stop('n2')
    expect((await failure(world.plane('n1').ask('n2', 'stats', null))).error).to.equal('nodedown')
  })
})
