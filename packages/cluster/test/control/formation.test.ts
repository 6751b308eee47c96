import { expect } from 'chai'
import { ControlWorld } from './control-world.ts'

describe('forming a cluster', () => {
  let world: ControlWorld
  afterEach(async () => {
    await world.stopAll()
    // Delivers the messages that were on their way when the last node stopped.
    await world.advance(world.hub.delayMs)
    expect(world.clock.pendingTimers).to.be.lessThan(3)
    expect(world.fatal).to.deep.equal([])
  })

  for (const order of [['n1', 'n2', 'n3'], ['n3', 'n2', 'n1'], ['n2', 'n3', 'n1']]) {
    it(`happens without any call when nodes start in the order ${order.join(', ')}`, async () => {
      world = new ControlWorld()
      for (const name of order) { await world.start(name); await world.advance(700) }
      await world.serving(order)
      expect(Object.keys(world.plane('n1').state()?.nodes ?? {}).sort()).to.deep.equal(['n1', 'n2', 'n3'])
      const ids = order.map(name => world.plane(name).state()?.clusterId)
      expect(new Set(ids).size).to.equal(1)
    })
  }

  it('takes under five seconds from the start of the last node', async () => {
    world = new ControlWorld()
    await world.form()
    expect(world.clock.monotonic()).to.be.lessThan(5000)
  })

  it('of one node needs no seeds', async () => {
    world = new ControlWorld({ seeds: [] })
    await world.form(['n1'])
    const record = await world.during(world.plane('n1').createDatabase('db', { q: 2, n: 3, partitioned: false }))
    expect(record.shards.map(shard => shard.replicas)).to.deep.equal([
      [{ node: 'n1', filling: false }], [{ node: 'n1', filling: false }],
    ])
  })

  it('waits until a majority of the seeds says that it is fresh', async () => {
    world = new ControlWorld()
    await world.start('n1')
    await world.advance(20_000)
    expect(world.plane('n1').state()).to.equal(null)
    expect(world.plane('n1').unavailableReason()).to.match(/not been admitted/)
    expect(world.said('n1', '1 of 3 seeds answer that they are fresh')).to.equal(true)
    await world.start('n2')
    await world.serving(['n1', 'n2'])
  })

  it('is left to the first seed: others wait for it', async () => {
    world = new ControlWorld()
    await world.start('n2')
    await world.start('n3')
    await world.advance(20_000)
    expect(world.plane('n2').state()).to.equal(null)
    expect(world.said('n2', 'n1.test:7000, the first seed, forms one')).to.equal(true)
    await world.start('n1')
    await world.serving(['n1', 'n2', 'n3'])
  })

  it('survives a restart of every node, in another order', async () => {
    world = new ControlWorld()
    await world.form()
    await world.during(world.plane('n2').createDatabase('db', { q: 2, n: 3, partitioned: true }))
    const clusterId = world.plane('n1').state()?.clusterId
    await world.stopAll()
    for (const name of ['n3', 'n1', 'n2']) await world.start(name)
    expect(world.plane('n3').state()?.databases.get('db')?.partitioned).to.equal(true)
    await world.leader()
    expect(world.plane('n1').state()?.clusterId).to.equal(clusterId)
    await world.during(world.plane('n1').createDatabase('db2', { q: 2, n: 3, partitioned: false }))
  })

  it('warns of nothing while it takes its usual time, and of the lack of a cluster later', async () => {
    world = new ControlWorld()
    await world.form()
    expect(world.lines.filter(({ level }) => level === 'warn')).to.deep.equal([])
    await world.stopAll()
    const lonely = new ControlWorld()
    await lonely.start('n2')
    const warnings = (): unknown[] => lonely.lines.filter(({ level }) => level === 'warn').map(({ message }) => message)
    await lonely.advance(10_000)
    expect(warnings()).to.deep.equal([])
    await lonely.advance(60_000)
    expect(warnings()).to.deep.equal(['no seed is a member of a cluster yet; n1.test:7000, the first seed, forms one'])
    await lonely.stopAll()
  })

  it('is logged once, not again at each restart', async () => {
    world = new ControlWorld()
    await world.form()
    const tellings = (): number =>
      world.lines.filter(({ level, message }) => level === 'info' && message === 'membership').length
    await world.during(world.plane('n1').createDatabase('db', { q: 2, n: 3, partitioned: false }))
    const before = tellings()
    expect(before).to.be.greaterThan(2)
    await world.stopAll()
    for (const name of ['n1', 'n2', 'n3']) await world.start(name)
    await world.leader()
    await world.during(world.plane('n1').createDatabase('db2', { q: 2, n: 3, partitioned: false }))
    expect(tellings()).to.equal(before)
  })

  it('does not form a second cluster when the first seed lost its disk', async () => {
    world = new ControlWorld()
    await world.form()
    const clusterId = world.plane('n2').state()?.clusterId
    await world.stop('n1')
    world.wipe('n1')
    await world.start('n1')
    await world.until(() => world.plane('n1').unavailableReason() === null, 'n1 is back')
    expect(world.plane('n1').state()?.clusterId).to.equal(clusterId)
  })

  it('refuses a data directory of another node', async () => {
    world = new ControlWorld({ seeds: [] })
    await world.form(['n1'])
    await world.stop('n1')
    world.moveDisk('n1', 'n2')
    const failure = await world.start('n2').catch((error: unknown) => error)
    expect(String(failure)).to.match(/belongs to node n1, not to n2/)
  })
})
