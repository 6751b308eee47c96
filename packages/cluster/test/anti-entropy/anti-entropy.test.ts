import { expect } from 'chai'
import type { AntiEntropy } from '../../src/anti-entropy/anti-entropy.ts'
import { defaultAntiEntropyOptions } from '../../src/anti-entropy/anti-entropy-options.ts'
import type { RefillTask } from '../../src/anti-entropy/refills.ts'
import { bytes, edit, plainCall, ReplicaWorld, request } from '../replica-world.ts'
import type { WorldOptions } from '../replica-world.ts'

interface ReplicaPlace { readonly node: string; readonly filling: boolean }

class Running {
  readonly world: ReplicaWorld
  readonly drivers = new Map<string, AntiEntropy>()

  constructor(options: WorldOptions = {}) {
    this.world = new ReplicaWorld(options)
  }

  start(...nodes: string[]): void {
    for (const node of nodes) {
      const driver = this.world.antiEntropy(node)
      this.drivers.set(node, driver)
      driver.start()
    }
  }

  async stop(): Promise<void> {
    for (const driver of this.drivers.values()) await driver.stop()
    expect(this.world.clock.pendingTimers).to.equal(0)
  }

  async storeOn(node: string, id: string, ids: readonly string[] = ['r']): Promise<void> {
    await this.world.store(node).storeRevisions(
      { revisions: [{ id, path: { start: ids.length, ids }, deleted: false, body: bytes({ id }) }], revsLimit: 1000 },
      plainCall,
    )
  }

  async holders(id: string): Promise<string[]> {
    return Object.entries(await this.world.leavesOf(id)).filter(([, leaves]) => leaves.length > 0).map(([node]) => node)
  }

  catchingUp(): string[] {
    return this.world.nodes.filter(node => this.world.store(node).catchingUp)
  }

  metric(node: string, name: string, label?: string): Promise<number> {
    return this.world.metrics.get(node)!.value(name, label)
  }
}

describe('anti-entropy', () => {
  let running: Running
  afterEach(() => running.stop())

  it('pushes missing changes soon after a write', async () => {
    running = new Running()
    running.start('a', 'b', 'c')
    await running.world.clock.advance(5_000)
    await running.storeOn('b', 'x')
    await running.world.clock.advance(4_000)
    expect(await running.holders('x')).to.deep.equal(['a', 'b', 'c'])
    expect(await running.metric('b', 'sectional_anti_entropy_stored_total')).to.equal(2)
  })

  it('pushes what a replica has after a start, also when the node learns only later that it hosts it', async () => {
    running = new Running()
    running.start('a', 'c')
    await running.world.clock.advance(5_000)
    await running.storeOn('b', 'x')
    running.world.stateKnown = false
    running.start('b')
    await running.world.clock.advance(5_000)
    running.world.stateKnown = true
    running.world.setDatabase(running.world.db)
    await running.world.clock.advance(5_000)
    const { history, sequence } = await running.world.store('b').upkeep.replicaInfo(plainCall)
    for (const node of ['a', 'c']) {
      expect((await running.world.store(node).upkeep.replicaInfo(plainCall)).seen[history], node).to.equal(sequence)
    }
  })

  it('tries a push that failed again soon, not only in the periodic pass', async () => {
    running = new Running()
    running.start('a', 'b', 'c')
    await running.world.clock.advance(5_000)
    running.world.faults.set('c', { kind: 'fail', code: 'overloaded' })
    await running.storeOn('b', 'x')
    await running.world.clock.advance(4_000)
    expect(await running.holders('x')).to.deep.equal(['a', 'b'])
    running.world.faults.delete('c')
    await running.world.clock.advance(8_000)
    expect(await running.holders('x')).to.deep.equal(['a', 'b', 'c'])
  })

  it('tries a pull that failed again soon, so that the replica decides edits again', async () => {
    running = new Running()
    running.world.faults.set('a', { kind: 'fail', code: 'timeout' })
    running.world.faults.set('b', { kind: 'fail', code: 'timeout' })
    running.start('c')
    await running.world.clock.advance(3_000)
    expect(running.catchingUp()).to.deep.equal(['c'])
    running.world.faults.clear()
    await running.world.clock.advance(3_000)
    expect(running.catchingUp()).to.deep.equal([])
  })

  it('tries pushes to a failing peer at growing intervals', async () => {
    running = new Running()
    running.start('a', 'b', 'c')
    await running.world.clock.advance(5_000)
    running.world.faults.set('c', { kind: 'fail', code: 'overloaded' })
    await running.storeOn('b', 'x')
    await running.world.clock.advance(600_000)
    const asked = running.world.calls.filter(call =>
      call.from === 'b' && call.node === 'c' && call.verb === 'replicaInfo').length
    expect(asked).to.be.within(8, 40)
  })

  it('confirms a burst of writes by few passes, and then falls silent', async () => {
    running = new Running()
    running.start('a', 'b', 'c')
    await running.world.clock.advance(5_000)
    const coordinator = running.world.coordinator('a')
    for (let i = 0; i < 50; i++) {
      await coordinator.updateDocuments(running.world.db, [edit(`x${i}`, null, { i })], { w: 3 }, request())
      await running.world.clock.advance(20)
    }
    running.world.calls.length = 0
    await running.world.clock.advance(10_000)
    // Each of the six directed pairs confirms once. A revision that arrived by a push causes no further push.
    expect(running.world.calls.filter(call => call.verb === 'diffRevisions')).to.have.length(6)
    expect(running.world.calls.filter(call => call.verb === 'storeRevisions')).to.have.length(6)
    running.world.calls.length = 0
    await running.world.clock.advance(80_000)
    expect(running.world.calls.map(({ verb }) => verb), 'each pair is checked once').to.deep.equal([
      'replicaInfo', 'replicaInfo', 'replicaInfo',
    ])
    running.world.calls.length = 0
    await running.world.clock.advance(200_000)
    expect(running.world.calls).to.deep.equal([])
  })

  it('brings a replica that was cut off up to date, including its revision trees', async () => {
    running = new Running()
    running.start('a', 'b', 'c')
    await running.world.clock.advance(5_000)
    running.world.isolate('c')
    for (let i = 0; i < 20; i++) {
      await running.world.coordinator('a')
        .updateDocuments(running.world.db, [edit(`x${i}`, null, { i })], {}, request())
    }
    await running.world.coordinator('c')
      .updateDocuments(running.world.db, [edit('x0', null, { other: true })], {}, request())
    await running.world.clock.advance(60_000)
    running.world.heal()
    await running.world.clock.advance(10_000)
    const leaves = await running.world.leavesOf('x0')
    expect(leaves.a).to.have.length(2)
    expect(leaves.b).to.deep.equal(leaves.a)
    expect(leaves.c).to.deep.equal(leaves.a)
    expect(await running.holders('x19')).to.deep.equal(['a', 'b', 'c'])
    expect(await running.metric('a', 'sectional_replication_lag_seconds')).to.equal(0)
  })

  it('repairs a missed write that a coordinator reports, without waiting for the periodic pass', async () => {
    running = new Running({ antiEntropy: { pushQuietMs: 20_000 } })
    running.start('a', 'b', 'c')
    await running.world.clock.advance(50_000)
    const driver = running.drivers.get('a')!
    const coordinator = running.world.coordinator('a', { onMissed: (shard, node) => driver.reportMissed(shard, node) })
    running.world.faults.set('c', { kind: 'fail', code: 'overloaded' })
    await coordinator.updateDocuments(running.world.db, [edit('x', null, {})], {}, request())
    await coordinator.stop()
    running.world.faults.clear()
    await running.world.clock.advance(2_000)
    expect(await running.holders('x')).to.deep.equal(['a', 'b', 'c'])
  })

  it('repeats failed passes in the periodic pass', async () => {
    running = new Running()
    running.start('a', 'b', 'c')
    await running.world.clock.advance(5_000)
    running.world.faults.set('b', { kind: 'fail', code: 'storage', verbs: ['storeRevisions'] })
    await running.storeOn('a', 'x')
    await running.world.clock.advance(10_000)
    expect(await running.holders('x')).to.deep.equal(['a', 'c'])
    expect(await running.metric('a', 'sectional_anti_entropy_passes_total', 'failed')).to.be.greaterThan(0)
    expect(await running.metric('a', 'sectional_replication_lag_seconds', 'b')).to.be.within(9, 11)
    running.world.faults.clear()
    await running.world.clock.advance(90_000)
    expect(await running.holders('x')).to.deep.equal(['a', 'b', 'c'])
  })

  it('fills a replica whose disk was lost', async () => {
    running = new Running({ q: 2 })
    for (const shard of [0, 1]) {
      for (let i = 0; i < 30; i++) {
        await running.world.store('a', shard).storeRevisions(
          {
            revisions: [{ id: `d${i}`, path: { start: 1, ids: ['r'] }, deleted: false, body: bytes({}) }],
            revsLimit: 1000,
          },
          plainCall,
        )
      }
    }
    running.start('a', 'b')
    await running.world.clock.advance(5_000)
    running.world.wipe('c')
    running.start('c')
    await running.world.clock.advance(5_000)
    for (const shard of [0, 1]) {
      expect((await running.world.store('c', shard).upkeep.replicaInfo(plainCall)).documentCount).to.equal(30)
    }
  })

  it('synchronizes a database on demand', async () => {
    running = new Running({ antiEntropy: { pushQuietMs: 1_000_000, pushDelayMaxMs: 1_000_000 } })
    running.start('a', 'b', 'c')
    await running.world.clock.advance(1_000)
    await running.storeOn('a', 'x')
    running.drivers.get('a')!.synchronize(running.world.db)
    expect(running.drivers.get('a')!.jobs).to.equal(2)
    await running.world.clock.advance(0)
    expect(await running.holders('x')).to.deep.equal(['a', 'b', 'c'])
    expect(running.drivers.get('a')!.jobs).to.equal(0)
  })

  it('makes replicas equal within minutes after a small _revs_limit has cut their branches apart', async () => {
    running = new Running({ nodes: ['a', 'b'] })
    const { world } = running
    world.setDatabase({ ...world.db, revsLimit: 2 })
    const store = (node: string, start: number, ids: readonly string[]): Promise<unknown> =>
      world.store(node).storeRevisions(
        { revisions: [{ id: 'x', path: { start, ids }, deleted: false, body: bytes({ start }) }], revsLimit: 2 },
        plainCall,
      )
    running.start('a', 'b')
    for (const node of ['a', 'b']) await store(node, 2, ['second', 'first'])
    await world.clock.advance(10_000)
    // Neither of the two replicas knows that the fifth revision descends from the second.
    for (const node of ['a', 'b']) await store(node, 5, ['fifth', 'fourth'])
    await world.clock.advance(10_000)
    // Then one of them receives the revisions in between.
    await store('b', 5, ['fifth', 'fourth', 'third', 'second'])
    await world.clock.advance(10_000)
    const before = await world.leavesOf('x')
    expect([before.a!.length, before.b!.length]).to.deep.equal([2, 1])
    await world.clock.advance(80_000)
    const after = await world.leavesOf('x')
    expect(after.b).to.deep.equal(after.a)
  })

  for (const [what, other] of [['by their counts', []], ['in one of several branches', [['y']]]] as const) {
    it(`notices in the periodic pass that replicas differ ${what} after a purge, although each saw all`, async () => {
      running = new Running()
      running.start('a', 'b', 'c')
      await running.world.clock.advance(70_000)
      for (const node of ['a', 'b', 'c']) for (const ids of [['a'], ...other]) await running.storeOn(node, 'doc', ids)
      await running.world.clock.advance(100_000)
      running.world.isolate('c')
      for (const node of ['a', 'b']) await running.storeOn(node, 'doc', ['b', 'a'])
      // The purge names no ancestors: a and b lose the whole branch, c keeps its leaf.
      const purge = { uuid: 'p', id: 'doc', paths: [{ start: 2, ids: ['b'] }] }
      for (const node of ['a', 'b', 'c']) await running.world.store(node).purgeDocuments({ purges: [purge] }, plainCall)
      running.world.heal()
      await running.world.clock.advance(200_000)
      const leaves = Object.values(await running.world.leavesOf('doc')).map(each => each.map(leaf => leaf.revision))
      expect(leaves[0]).to.deep.equal(leaves[1]).and.deep.equal(leaves[2])
      expect(await running.metric('a', 'sectional_replication_lag_seconds')).to.equal(0)
    })
  }

  it('compares digests now and then, and repairs what checkpoints missed', async () => {
    running = new Running({ antiEntropy: { digestIntervalMs: 60_000, digestBuckets: 16 } })
    await running.storeOn('b', 'x')
    for (const [node, history] of [['a', 'b-2'], ['c', 'b-2']] as const) {
      await running.world.store(node)
        .storeRevisions({ revisions: [], revsLimit: 1000, checkpoint: { history, sequence: 99 } }, plainCall)
    }
    running.start('a', 'b', 'c')
    await running.world.clock.advance(20_000)
    expect(await running.holders('x')).to.deep.equal(['b'])
    await running.world.clock.advance(300_000)
    expect(await running.holders('x')).to.deep.equal(['a', 'b', 'c'])
    const found = await Promise.all(
      ['a', 'b', 'c'].map(node => running.metric(node, 'sectional_digest_documents_found_total')),
    )
    expect(found.reduce((sum, each) => sum + each)).to.be.within(1, 2)
  })

  it('ends a pass that hangs when it is stopped', async () => {
    running = new Running()
    running.start('a')
    await running.storeOn('a', 'x')
    for (const node of ['b', 'c']) running.world.faults.set(node, { kind: 'hang' })
    await running.world.clock.advance(6_000)
    expect(running.drivers.get('a')!.jobs).to.be.greaterThan(0)
  })
})

describe('catching up', () => {
  let running: Running
  afterEach(() => running.stop())

  it('declines to decide after a start until the reachable peers were pulled from', async () => {
    running = new Running()
    running.world.isolate('c')
    running.start('a', 'b')
    await running.world.clock.advance(1_000)
    expect(running.catchingUp()).to.deep.equal([])
    await running.storeOn('a', 'x')
    running.start('c')
    await running.world.clock.advance(10_000)
    expect(running.catchingUp(), 'nobody was reachable yet').to.deep.equal(['c'])
    running.world.heal()
    await running.world.clock.advance(0)
    expect(running.catchingUp()).to.deep.equal([])
    expect(await running.holders('x')).to.include('c')
  })

  it('lets replicas that stayed with the majority continue to decide', async () => {
    running = new Running()
    running.start('a', 'b', 'c')
    await running.world.clock.advance(1_000)
    running.world.isolate('c')
    await running.storeOn('a', 'x')
    for (const node of ['a', 'b', 'c']) running.world.faults.set(node, { kind: 'hang' })
    running.world.heal()
    await running.world.clock.advance(500)
    expect(running.catchingUp()).to.deep.equal(['c'])
    running.world.faults.clear()
    await running.world.clock.advance(200_000)
    expect(running.catchingUp()).to.deep.equal([])
  })

  it('does not decline for ever when the peers cannot be read', async () => {
    running = new Running({ antiEntropy: { catchUpMaxMs: 100_000 } })
    for (const node of ['b', 'c']) running.world.faults.set(node, { kind: 'fail', code: 'storage' })
    running.start('a')
    await running.world.clock.advance(90_000)
    expect(running.catchingUp()).to.deep.equal(['a'])
    await running.world.clock.advance(100_000)
    expect(running.catchingUp()).to.deep.equal([])
    running.world.faults.clear()
    await running.storeOn('b', 'x')
    await running.world.clock.advance(100_000)
    expect(await running.holders('x'), 'it is still pulled from').to.include('a')
  })

  it('ends when the other replicas are removed, and also after one was added again', async () => {
    running = new Running({ nodes: ['a', 'b'], n: 2 })
    const { world } = running
    const [shard] = world.db.shards
    const place = (...replicas: readonly ReplicaPlace[]): void => {
      world.setDatabase({ ...world.db, shards: [{ ...shard!, replicas }] })
    }
    const [a, b] = ['a', 'b'].map(node => ({ node, filling: false })) as [ReplicaPlace, ReplicaPlace]
    running.start('a', 'b')
    world.cut('a', 'b')
    await world.clock.advance(5_000)
    expect(world.store('a').catchingUp).to.equal(true)
    place(a)
    await world.clock.advance(5_000)
    expect(world.store('a').catchingUp).to.equal(false)
    world.heal()
    place(a, { ...b, filling: true })
    await world.clock.advance(100_000)
    place(a, b)
    await world.clock.advance(100_000)
    expect(world.store('a').catchingUp).to.equal(false)
  })

  it('ends although the shard was not on the node for a time', async () => {
    running = new Running({ nodes: ['a', 'b', 'c'], n: 2 })
    const { world } = running
    const { db } = world
    running.start('a', 'b', 'c')
    world.cut('a', 'b')
    await world.clock.advance(5_000)
    expect(world.store('a').catchingUp).to.equal(true)
    world.setDatabase({ ...db, shards: [{ ...db.shards[0]!, replicas: [{ node: 'b', filling: false }] }] })
    await world.clock.advance(5_000)
    world.heal()
    world.setDatabase(db)
    await world.clock.advance(100_000)
    expect(world.store('a').catchingUp).to.equal(false)
  })

  it('declines after a coordinator has reported a missed write, until it has every change of its peers', async () => {
    running = new Running({ antiEntropy: { pushQuietMs: 60_000, pushMissedMs: 60_000, pushDelayMaxMs: 60_000 } })
    running.start('a', 'b', 'c')
    await running.world.clock.advance(100_000)
    const driver = running.drivers.get('b')!
    const coordinator = running.world.coordinator('b', { onMissed: (shard, node) => driver.reportMissed(shard, node) })
    running.world.faults.set('c', { kind: 'fail', code: 'overloaded' })
    await coordinator.updateDocuments(running.world.db, [edit('x', null, {})], {}, request())
    await coordinator.stop()
    // The replica accepts writes of its peers again, but cannot read from them yet.
    running.world.faults.set('c', { kind: 'fail', code: 'overloaded', verbs: ['diffRevisions'] })
    for (const node of ['a', 'b']) running.world.faults.set(node, { kind: 'fail', code: 'overloaded' })
    await running.world.clock.advance(5_000)
    expect(running.catchingUp()).to.deep.equal(['c'])
    running.world.faults.clear()
    await running.world.clock.advance(5_000)
    expect(running.catchingUp()).to.deep.equal([])
    expect(await running.holders('x')).to.include('c')
  })

  it('declines after this node itself has missed a write', async () => {
    running = new Running()
    running.start('a', 'b', 'c')
    await running.world.clock.advance(100_000)
    for (const node of ['a', 'b']) running.world.faults.set(node, { kind: 'fail', code: 'overloaded' })
    const { incarnation, shards } = running.world.db
    running.drivers.get('c')!.reportMissed({ incarnation, range: shards[0]!.range }, 'c')
    await running.world.clock.advance(5_000)
    expect(running.catchingUp()).to.deep.equal(['c'])
    running.world.faults.clear()
    await running.world.clock.advance(5_000)
    expect(running.catchingUp()).to.deep.equal([])
  })

  it('receives the notice of a missed write also when its link to the coordinator opens only later', async () => {
    running = new Running()
    running.start('a', 'b', 'c')
    await running.world.clock.advance(5_000)
    const shard = { incarnation: 'one', range: running.world.db.shards[0]!.range }
    running.world.cut('a', 'c')
    running.drivers.get('a')!.reportMissed(shard, 'c')
    await running.world.clock.advance(5_000)
    expect(running.catchingUp()).to.deep.equal([])
    for (const node of ['a', 'b']) running.world.faults.set(node, { kind: 'fail', code: 'overloaded' })
    running.world.heal()
    await running.world.clock.advance(100)
    expect(running.catchingUp()).to.deep.equal(['c'])
    running.world.faults.clear()
    await running.world.clock.advance(10_000)
    expect(running.catchingUp()).to.deep.equal([])
  })

  it('is sent no notice of a missed write any more when the shard has no replica there', async () => {
    running = new Running()
    running.start('a', 'b')
    const { world } = running
    world.cut('a', 'c')
    running.drivers.get('a')!.reportMissed({ incarnation: 'one', range: world.db.shards[0]!.range }, 'c')
    world.setDatabase({
      ...world.db, shards: world.db.shards.map(({ range, replicas }) => (
        { range, replicas: replicas.filter(({ node }) => node !== 'c') })),
    })
    await world.clock.advance(2 * defaultAntiEntropyOptions.periodicPassMs)
    world.calls.length = 0
    world.heal()
    await world.clock.advance(5_000)
    expect(world.calls.filter(({ node }) => node === 'c')).to.deep.equal([])
  })

  it('compares digests before it decides again when its process did not end in order, and once', async () => {
    running = new Running()
    const lost = { id: 'lost', path: { start: 1, ids: ['r'] }, deleted: false, body: bytes({}) }
    for (const node of ['a', 'b']) {
      await running.world.store(node).storeRevisions({ revisions: [lost], revsLimit: 1000 }, plainCall)
    }
    // The checkpoints of c cover changes that its disk has lost.
    for (const node of ['a', 'b']) {
      const { history, sequence } = await running.world.store(node).upkeep.replicaInfo(plainCall)
      await running.world.store('c')
        .storeRevisions({ revisions: [], revsLimit: 1000, checkpoint: { history, sequence } }, plainCall)
    }
    const { begin, end } = running.world.db.shards[0]!.range
    running.world.uncompared.add(`c one/${begin}-${end}`)
    running.world.isolate('c')
    running.start('a', 'b', 'c')
    await running.world.clock.advance(10_000)
    expect(running.catchingUp(), 'nobody to compare with yet').to.deep.equal(['c'])
    running.world.heal()
    await running.world.clock.advance(1_000)
    expect(running.catchingUp()).to.deep.equal([])
    expect(await running.holders('lost')).to.include('c')
    expect(running.world.uncompared.size).to.equal(0)
    const compared = await running.metric('c', 'sectional_anti_entropy_passes_total', 'compare')
    expect(compared).to.be.at.least(2)
    await running.world.clock.advance(200_000)
    expect(await running.metric('c', 'sectional_anti_entropy_passes_total', 'compare')).to.equal(compared)
    expect(await running.metric('a', 'sectional_anti_entropy_passes_total', 'compare')).to.equal(0)
  })

  it('shows the progress of a refill', async () => {
    running = new Running({ nodes: ['a', 'b', 'c'], n: 2, antiEntropy: { batchDocumentsMax: 10 } })
    for (let i = 0; i < 300; i++) await running.storeOn('a', `d${i}`)
    running.start('a', 'b', 'c')
    await running.world.clock.advance(10_000)
    const { db } = running.world
    running.world.faults.set('b', { kind: 'hang' })
    const seen: { readonly task: readonly RefillTask[]; readonly filling: number; readonly left: number }[] = []
    const original = running.world.store('a').openRevisions.bind(running.world.store('a'))
    running.world.store('a').openRevisions = async (requests, call) => {
      const [filling, left] = [
        await running.metric('c', 'sectional_replicas_filling'),
        await running.metric('c', 'sectional_refill_changes_left'),
      ]
      seen.push({ task: running.drivers.get('c')!.refills(), filling, left })
      return await original(requests, call)
    }
    running.world.setDatabase({
      ...db,
      shards: db.shards.map(shard => ({ ...shard, replicas: [...shard.replicas, { node: 'c', filling: true }] })),
    })
    await running.world.clock.advance(5_000)
    const first = seen.find(({ task }) => task.length > 0)!
    expect(first).to.deep.include({ filling: 1, left: 300 })
    expect(first.task[0]).to.include({ database: 'db', source: 'a', changesDone: 0, totalChanges: 300 })
    const last = seen.at(-1)!
    expect(last.task[0]!.changesDone).to.be.greaterThan(first.task[0]!.changesDone)
    expect(last.left).to.equal(300 - last.task[0]!.changesDone)
    expect(running.drivers.get('c')!.refills().filter(({ source }) => source === 'a')).to.deep.equal([])
    running.world.faults.clear()
    await running.world.clock.advance(200_000)
  })

  it('rebuilds a replica only after the log has the report that it was filled before', async () => {
    running = new Running({ nodes: ['a', 'b', 'c'] })
    const { world } = running
    const [shard] = world.db.shards
    const setFilling = (filling: boolean): void => {
      const replicas = ['a', 'b', 'c'].map(node => ({ node, filling: node === 'c' && filling }))
      world.setDatabase({ ...world.db, shards: [{ ...shard!, replicas }] })
    }
    const steps: string[] = []
    const reported = Promise.withResolvers<void>()
    world.onFilled = async () => {
      if (steps.length > 0) return
      await reported.promise
      steps.push('filled')
      setFilling(false)
    }
    world.onDamaged = async () => {
      steps.push('damaged')
      setFilling(true)
      return true
    }
    world.onRebuild = () => { steps.push('rebuilt') }
    setFilling(true)
    running.start('a', 'b', 'c')
    await world.clock.advance(10_000)
    expect(world.filledReports.length).to.equal(1)
    world.damage('c')
    await world.clock.advance(10_000)
    expect(steps).to.deep.equal([])
    reported.resolve()
    await world.clock.advance(10_000)
    expect(steps).to.deep.equal(['filled', 'damaged', 'rebuilt'])
    expect(world.filledReports.length, 'it is filled again').to.equal(2)
  })

  it('reports a filling replica once it has every change of its active peers', async () => {
    running = new Running({ nodes: ['a', 'b', 'c'], n: 2 })
    for (let i = 0; i < 20; i++) await running.storeOn('a', `d${i}`)
    await running.storeOn('b', 'only-b')
    running.start('a', 'b', 'c')
    await running.world.clock.advance(1_000)
    const { db } = running.world
    running.world.faults.set('a', { kind: 'hang' })
    running.world.setDatabase({
      ...db,
      shards: db.shards.map(shard => ({ ...shard, replicas: [...shard.replicas, { node: 'c', filling: true }] })),
    })
    await running.world.clock.advance(10_000)
    expect(running.world.filledReports).to.deep.equal([])
    running.world.faults.clear()
    await running.world.clock.advance(200_000)
    expect(running.world.filledReports).to.deep.equal(['one 0 c'])
    expect((await running.world.store('c').upkeep.replicaInfo(plainCall)).documentCount).to.equal(21)
    const comparisons = await running.metric('c', 'sectional_anti_entropy_passes_total', 'compare')
    expect(comparisons, 'digests are compared before').to.be.greaterThan(1)
  })
})
