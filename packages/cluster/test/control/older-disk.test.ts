import { expect } from 'chai'
import type { MemoryDisk } from '@sectional/runtime'
import { ControlWorld } from './control-world.ts'

const options = { q: 2, n: 3, partitioned: false }

describe('a node with an older copy of its data directory', () => {
  let world: ControlWorld
  afterEach(async () => {
    await world.stopAll()
    expect(world.fatal).to.deep.equal([])
  })

  async function create(through: string, ...databases: readonly string[]): Promise<void> {
    for (const name of databases) await world.during(world.plane(through).createDatabase(name, options))
  }

  /** Stops a node and copies its disk, as an administrator would. */
  async function copyStopped(name: string): Promise<MemoryDisk> {
    await world.stop(name)
    return world.disk(name).copy(world.clock)
  }

  /** Checks that all members serve, know the same databases and vote as before. */
  async function healed(names: readonly string[], databases: readonly string[]): Promise<void> {
    await world.serving(names)
    await world.until(
      () =>
        names.every(name =>
          String([...world.plane(name).state()!.databases.keys()].sort()) === String([...databases].sort())),
      'all know the same databases', 120_000,
    )
    await world.voting(names)
    await world.until(() => names.every(name => world.plane(name).notReadyReason() === null), 'all are ready')
  }

  for (const names of [['n1', 'n2', 'n3'], ['n1', 'n2'], ['n1', 'n2', 'n3', 'n4', 'n5']]) {
    for (const role of ['follower', 'leader'] as const) {
      it(`of ${names.length}, which was a ${role}, gives it up, gets new histories, and is admitted anew`, async () => {
        world = new ControlWorld({ seeds: names })
        await world.form(names)
        await create('n1', 'before', 'deleted')
        const leader = await world.leader()
        const node = role === 'leader' ? leader : names.find(name => name !== leader)!
        const other = names.find(name => name !== node)!
        const copy = await copyStopped(node)
        await world.start(node)
        await healed(names, ['before', 'deleted'])
        await create(other, 'after')
        await world.during(world.plane(other).deleteDatabase('deleted'))
        await world.stop(node)
        world.putBack(node, copy)
        await world.start(node)
        await world.until(() => world.renewed.includes(node), `${node} gives its replicas new histories`, 120_000)
        await healed(names, ['before', 'after'])
        expect(world.said(node, 'is an older copy')).to.equal(true)
        const fillingAt = world.plane(other).state()!.databases.get('before')!.shards.flatMap(({ replicas }) =>
          replicas.filter(({ filling }) => filling).map(replica => replica.node))
        expect([...new Set(fillingAt)]).to.deep.equal([node])
        await world.stop(node)
        await world.start(node)
        await healed(names, ['before', 'after'])
        expect(world.renewed).to.deep.equal([node])
      })
    }
  }

  it('is noticed by a leader that knows what it had acknowledged, also when it was copied while it ran', async () => {
    world = new ControlWorld()
    await world.form()
    const leader = await world.leader()
    const node = ['n1', 'n2', 'n3'].find(name => name !== leader)!
    await create(leader, 'before')
    const copy = world.disk(node).copy(world.clock)
    await create(leader, 'one', 'two', 'three')
    await world.crash(node)
    world.putBack(node, copy)
    await world.start(node)
    await world.until(() => world.renewed.includes(node), `${node} gives its replicas new histories`)
    await healed(['n1', 'n2', 'n3'], ['before', 'one', 'two', 'three'])
    expect(world.said(leader, 'no longer has entries of the metadata log that it had acknowledged')).to.equal(true)
  })

  it('does not help to elect a leader that lacks what it had acknowledged', async () => {
    world = new ControlWorld()
    await world.form()
    const leader = await world.leader()
    const [node = '', behind = ''] = ['n1', 'n2', 'n3'].filter(name => name !== leader)
    const copy = await copyStopped(node)
    await world.start(node)
    await healed(['n1', 'n2', 'n3'], [])
    await world.stop(behind)
    await create(leader, 'only on two disks')
    await world.stop(node)
    await world.stop(leader)
    world.putBack(node, copy)
    await world.start(behind)
    await world.start(node)
    await world.advance(30_000)
    expect([world.plane(behind).leader(), world.plane(node).leader()]).to.deep.equal([null, null])
    await world.start(leader)
    await healed(['n1', 'n2', 'n3'], ['only on two disks'])
    expect(world.renewed).to.deep.equal([node])
  })

  it('is not suspected after restarts, crashes, and restarts without a leader', async () => {
    world = new ControlWorld()
    await world.form()
    for (const stop of [(name: string) => world.stop(name), (name: string) => world.crash(name)]) {
      for (const name of ['n1', 'n2', 'n3']) await stop(name)
      for (let at = 0; at < 5; at += 1) {
        await world.start('n1')
        await world.advance(300 * at)
        await stop('n1')
      }
      for (const name of ['n1', 'n2', 'n3']) await world.start(name)
      await healed(['n1', 'n2', 'n3'], [])
    }
    for (let at = 0; at < 10; at += 1) {
      const name = `n${1 + at % 3}`
      await world.crash(name)
      await world.advance(137 * at)
      await world.start(name)
    }
    await healed(['n1', 'n2', 'n3'], [])
    expect(world.renewed).to.deep.equal([])
  })

  it('is given up also when the disk takes no writes at first', async () => {
    world = new ControlWorld()
    await world.form()
    const copy = await copyStopped('n3')
    await world.start('n3')
    await healed(['n1', 'n2', 'n3'], [])
    await world.stop('n3')
    world.putBack('n3', copy)
    await world.start('n3')
    world.disk('n3').setFaults({ failWrite: () => 'io' })
    await world.until(() => world.said('n3', 'joining failed'), 'n3 cannot give its metadata up')
    expect(world.renewed).to.deep.equal([])
    world.disk('n3').setFaults({})
    await healed(['n1', 'n2', 'n3'], [])
    expect(world.renewed).to.deep.equal(['n3'])
  })

  it('is not suspected when a start could not be recorded', async () => {
    world = new ControlWorld()
    await world.form()
    await world.stop('n3')
    world.disk('n3').failNextWrite('full')
    await world.start('n3')
    await healed(['n1', 'n2', 'n3'], [])
    await world.crash('n3')
    await world.start('n3')
    await healed(['n1', 'n2', 'n3'], [])
    expect(world.renewed).to.deep.equal([])
  })

  it('works for all nodes at once: a cluster is restored from copies of the same stopped moment', async () => {
    world = new ControlWorld()
    await world.form()
    await create('n1', 'before')
    const copies = new Map<string, MemoryDisk>()
    for (const name of ['n1', 'n2', 'n3']) copies.set(name, await copyStopped(name))
    for (const name of copies.keys()) await world.start(name)
    await healed(['n1', 'n2', 'n3'], ['before'])
    await create('n2', 'after')
    for (const name of copies.keys()) await world.stop(name)
    for (const [name, copy] of copies) world.putBack(name, copy)
    for (const name of copies.keys()) await world.start(name)
    await healed(['n1', 'n2', 'n3'], ['before'])
    expect(world.renewed).to.deep.equal([])
  })
})

describe('older copies of the data directories of a majority', () => {
  const names = ['n1', 'n2', 'n3']
  let world: ControlWorld
  afterEach(async () => {
    await world.stopAll()
    expect(world.fatal).to.deep.equal([])
  })

  async function createAll(through: string, count: number, prefix: string): Promise<void> {
    for (let at = 0; at < count; at += 1) {
      await world.during(world.plane(through).createDatabase(`${prefix}${at}`, options))
    }
  }

  /** Replaces the disks of n2 and n3 by older copies, which lack 15 databases. */
  async function putOlderBack(): Promise<void> {
    world = new ControlWorld()
    await world.form()
    for (const name of names) await world.stop(name)
    const copies = new Map(names.map(name => [name, world.disk(name).copy(world.clock)]))
    for (const name of names) await world.start(name)
    await world.serving(names)
    await createAll('n1', 15, 'lost')
    for (const name of names) await world.stop(name)
    for (const name of ['n2', 'n3']) world.putBack(name, copies.get(name)!)
  }

  for (const order of [['n1', 'n2', 'n3'], ['n2', 'n3', 'n1']]) {
    for (const created of [0, 1, 30]) {
      const story = `${order.join(', ')} start, and ${created} databases are created`
      it(`are not followed by the node that has what they lack: ${story}`, async () => {
        await putOlderBack()
        for (const name of order) {
          await world.start(name)
          if (name === 'n3') await createAll('n3', created, 'other')
        }
        const reason = (): string => world.plane('n1').notReadyReason() ?? ''
        await world.until(() => /does not follow n[23]/.test(reason()), 'n1 says that it does not follow')
        await world.advance(20_000)
        const known = [...world.plane('n1').state()!.databases.keys()]
        expect(known.filter(name => !name.startsWith('lost'))).to.deep.equal([])
        expect(world.plane('n1').leader()).to.equal(null)
        expect(world.said('n1', 'which leads the metadata log from an older copy')).to.equal(true)
        expect(world.renewed).to.deep.equal([])
      })
    }
  }
})
