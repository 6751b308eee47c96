import { expect } from 'chai'
import { MemoryLog, MemoryStorage, SeededRandom } from '@sectional/runtime'
import { ClusterRecovery, majorityIsLeft, recoveredState, recoveryReport } from '../../src/control/cluster-recovery.ts'
import { applyCommand, initialState } from '../../src/control/state-machine.ts'
import type { ControlState } from '../../src/control/state-machine.ts'
import type { CommandBody } from '../../src/control/commands.ts'
import { ControlWorld } from './control-world.ts'

const options = { q: 4, n: 3, partitioned: false }

function stateOf(...commands: readonly CommandBody[]): ControlState {
  return commands.reduce(
    (state, command, at) => applyCommand(state, at + 1, { ...command, id: `c${at}` }).state, initialState('old'),
  )
}

const admit = (node: string): CommandBody => ({
  type: 'admit-node', node, address: `${node}:1`, zone: null, fresh: true,
})
const create = (name: string, n: number, q = 3): CommandBody => ({
  type: 'create-database', name, incarnation: `of ${name}`, q, n, partitioned: false, seed: 0,
})

describe('cluster recovery', () => {
  it('counts the voters among this node and the nodes that answer', () => {
    expect(majorityIsLeft(['a', 'b', 'c'], 'a', [])).to.equal(false)
    expect(majorityIsLeft(['a', 'b', 'c'], 'a', ['c'])).to.equal(true)
    expect(majorityIsLeft(['a', 'b'], 'a', [])).to.equal(false)
    expect(majorityIsLeft(['a', 'b', 'c', 'd', 'e'], 'a', ['b'])).to.equal(false)
    expect(majorityIsLeft(['b', 'c', 'd'], 'learner', ['b', 'learner'])).to.equal(false)
    expect(majorityIsLeft(['a'], 'a', [])).to.equal(true)
  })

  it('reports the shards that this node lacks or has incompletely', () => {
    const filled = stateOf(admit('a'), admit('b'), admit('c'), create('all', 3), create('single', 1))
    const range = filled.databases.get('all')!.shards[0]!.range
    const state =
      applyCommand(filled, 6, { type: 'replica-damaged', incarnation: 'of all', range, node: 'a', id: 'damage' }).state
    const report = recoveryReport(state, 'a', { voters: ['a', 'b', 'c'], commitIndex: 5, lastIndex: 6 })
    expect(report.cutOff.map(({ name }) => name)).to.deep.equal(['b', 'c'])
    expect(report.databases).to.equal(2)
    expect(report.missing.map(({ database, otherReplicas }) => [database, ...otherReplicas])).to.deep.equal([
      ['single', 'b'], ['single', 'c'],
    ])
    expect(report.incomplete.map(({ database, range: { begin }, otherReplicas }) =>
      [database, begin, [...otherReplicas].sort()])).to.deep.equal([['all', range.begin, ['b', 'c']]])
    expect(report.shared).to.equal(2)
  })

  it('leaves this node alone with a replica of every shard, and everything else as it was', () => {
    const before = stateOf(admit('a'), admit('b'), admit('c'), create('all', 3), create('single', 1),
      { type: 'set-security', name: 'all', incarnation: 'of all', security: { admins: { names: ['x'] } } },
      { type: 'set-setting', section: 's', key: 'k', value: 'v' }, { type: 'forget-node', node: 'a' })
    const state = recoveredState(before, 'a', 'new', 9)
    expect(state.clusterId).to.equal('new')
    expect(state.index).to.equal(9)
    expect(Object.keys(state.nodes)).to.deep.equal(['a'])
    expect(state.lost).to.deep.equal([])
    expect(state.replaces).to.deep.equal(['old'])
    expect(state.settings).to.deep.equal({ 's/k': 'v' })
    for (const [name, database] of state.databases) {
      const old = before.databases.get(name)!
      expect({ ...database, shards: [] }).to.deep.equal({ ...old, shards: [] })
      expect(database.shards).to.deep.equal(
        old.shards.map(({ range }) => ({ range, replicas: [{ node: 'a', filling: false }] })),
      )
    }
  })

  for (const [founders, survivor] of [
    [['n1', 'n2', 'n3'], 'n2'], [['n1', 'n2'], 'n1'], [['n1', 'n2', 'n3', 'n4', 'n5'], 'n5'],
  ] as const) {
    const joined = 'which nodes with empty disks join and old members cannot'
    it(`forms a cluster of ${founders.length} anew from one survivor, ${joined}`, async () => {
      const world = new ControlWorld({ seeds: founders })
      await world.form(founders)
      await world.during(world.plane('n1').createDatabase('db', options))
      await world.during(world.plane('n1').createDatabase('other', options))
      const incarnation = world.plane('n1').state()!.databases.get('db')!.incarnation
      await world.until(() => world.plane(survivor).state()?.databases.size === 2, 'the survivor knows both')
      await world.stopAll()

      const recovery = await ClusterRecovery.open(new MemoryStorage(world.disk(survivor)), survivor, new MemoryLog())
      expect(recovery.report.cutOff.map(({ name }) => name).sort()).to.deep.equal(
        founders.filter(name => name !== survivor),
      )
      const clusterId = await recovery.carryOut(new SeededRandom(5))
      await recovery.close()

      await world.start(survivor)
      await world.until(() => world.plane(survivor).leader() === survivor, 'the survivor leads alone')
      expect(world.plane(survivor).state()!.clusterId).to.equal(clusterId)
      expect(world.plane(survivor).state()!.databases.get('db')!.incarnation).to.equal(incarnation)
      await world.during(world.plane(survivor).createDatabase('new', options))

      const [returning = '', ...emptied] = founders.filter(name => name !== survivor)
      await world.start(returning)
      await world.advance(20_000)
      expect(world.plane(survivor).connectedNodes()).to.deep.equal([survivor])
      expect(world.plane(survivor).state()!.nodes[returning]).to.equal(undefined)
      expect(world.plane(returning).state()!.databases.has('new')).to.equal(false)
      // The old cluster has the survivor as a member; the new one does not yield to it.
      expect(world.said(survivor, 'a node of another cluster was met')).to.equal(true)
      expect(world.plane(survivor).writesRefusedReason()).to.equal(null)
      await world.stop(returning)

      for (const name of [returning, ...emptied]) {
        world.wipe(name)
        await world.start(name)
        await world.serving([survivor, name])
      }
      await world.voting(founders)
      const replicas = Math.min(3, founders.length)
      await world.until(
        () =>
          world.plane(survivor).state()!.databases.get('db')!.shards.every(shard => shard.replicas.length === replicas),
        'new replicas of the lost ones',
      )
      await world.stopAll()
      expect(world.fatal).to.deep.equal([])
    })
  }

  it('keeps entries behind the commit index, which may have been acknowledged', async () => {
    const world = new ControlWorld()
    await world.form()
    const leader = await world.leader()
    const others = ['n1', 'n2', 'n3'].filter(name => name !== leader)
    world.hub.partition([leader], others)
    const lost = world.plane(leader).createDatabase('unsure', options).then(() => null, (error: unknown) => error)
    await world.advance(200)
    await world.stopAll()
    expect(await lost).to.be.an('error')
    const recovery = await ClusterRecovery.open(new MemoryStorage(world.disk(leader)), leader, new MemoryLog())
    expect(recovery.report.lastIndex).to.be.greaterThan(recovery.report.commitIndex)
    await recovery.carryOut(new SeededRandom(1))
    await recovery.close()
    await world.start(leader)
    expect([...world.plane(leader).state()!.databases.keys()]).to.deep.equal(['unsure'])
    await world.stopAll()
  })

  it('reports the voters of the last configuration in the log, not of an earlier one', async () => {
    const world = new ControlWorld()
    await world.form()
    await world.voting(['n1', 'n2', 'n3'])
    await world.stopAll()
    const recovery = await ClusterRecovery.open(new MemoryStorage(world.disk('n1')), 'n1', new MemoryLog())
    expect([...recovery.report.voters].sort()).to.deep.equal(['n1', 'n2', 'n3'])
    await recovery.close()
  })

  it('refuses a disk without a cluster, and that of another node', async () => {
    const world = new ControlWorld()
    await world.form()
    await world.stopAll()
    const refusal = (disk: string, node: string): Promise<string> =>
      ClusterRecovery.open(new MemoryStorage(world.disk(disk)), node, new MemoryLog())
        .then(() => 'accepted', (error: Error) => `${error.name}: ${error.message}`)
    expect(await refusal('n9', 'n9')).to.match(/RecoveryError: the data directory belongs to no cluster/)
    expect(await refusal('n1', 'n2')).to.match(/RecoveryError: the data directory belongs to node n1, not to n2/)
  })
})
