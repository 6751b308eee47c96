import { expect } from 'chai'
import { edit, plainCall, ReplicaWorld, request } from '../replica-world.ts'

async function storeOn(
  world: ReplicaWorld, nodes: readonly string[], ids: readonly string[], deleted = false,
): Promise<void> {
  const revision = { id: 'x', path: { start: ids.length, ids }, deleted, body: Buffer.from('{}') }
  for (const node of nodes) {
    await world.store(node).storeRevisions({ revisions: [revision], revsLimit: 1000 }, plainCall)
  }
}

async function purgesOn(world: ReplicaWorld, node: string): Promise<number> {
  return (await world.store(node).upkeep.replicaInfo(plainCall)).purgeSequence
}

async function write(world: ReplicaWorld, id: string): Promise<string> {
  const coordinator = world.coordinator('a')
  const [outcome] = await coordinator.updateDocuments(world.db, [edit(id, null, { id })], {}, request())
  await coordinator.stop()
  if (outcome?.kind !== 'written') throw new Error('not written')
  return outcome.revision
}

describe('purging documents', () => {
  it('removes revisions from every replica and tells which were leaves', async () => {
    const world = new ReplicaWorld({ q: 2 })
    const [x, y] = [await write(world, 'x'), await write(world, 'y')]
    const coordinator = world.coordinator('b')
    const requests = [{ id: 'x', revisions: [x, '9-ffff'] }, { id: 'y', revisions: [] }, { id: 'none', revisions: [y] }]
    expect((await coordinator.purgeDocuments(world.db, requests, {}, request())).map(outcome =>
      outcome.revisions)).to.deep.equal([[x], [], []])
    await coordinator.stop()
    for (const id of ['x', 'y']) {
      const opened = await coordinator.openDocument(world.db, id, { r: 3 }, request())
      expect(opened?.leaves.map(leaf => leaf.revision)).to.deep.equal(id === 'x' ? undefined : [y])
    }
    const infos = await coordinator.purgedInfos(world.db, request())
    expect(infos.map(({ id, revisions }) => `${id} ${revisions.join()}`).sort()).to.deep.equal([`x ${x}`])
    await coordinator.stop()
  })

  it('purges documents of one shard together', async () => {
    const world = new ReplicaWorld()
    const ids = ['x', 'y', 'z']
    const revisions: string[] = []
    for (const id of ids) revisions.push(await write(world, id))
    const coordinator = world.coordinator('a')
    const requests = ids.map((id, at) => ({ id, revisions: [revisions[at]!] }))
    world.calls.length = 0
    expect(await coordinator.purgeDocuments(world.db, requests, {}, request())).to.deep.equal(
      revisions.map(revision => ({ kind: 'purged', revisions: [revision], accepted: false })))
    expect(world.calls.filter(({ verb }) => verb === 'purgeDocuments').length).to.equal(world.nodes.length)
    await coordinator.stop()
    expect(world.clock.pendingTimers).to.equal(0)
    for (const id of ids) expect(await coordinator.openDocument(world.db, id, { r: 3 }, request())).to.equal(null)
    await coordinator.stop()
  })

  it('reaches the replicas that the shard gets meanwhile', async () => {
    const world = new ReplicaWorld()
    const x = await write(world, 'x')
    const grown = world.db
    world.setDatabase({ ...grown, shards: grown.shards.map(shard => ({
      ...shard, replicas: shard.replicas.filter(({ node }) => node !== 'c'),
    })) })
    const coordinator = world.coordinator('a')
    const purge = world.store('b').purgeDocuments.bind(world.store('b'))
    world.store('b').purgeDocuments = async (sent, call) => {
      world.setDatabase(grown)
      return purge(sent, call)
    }
    world.calls.length = 0
    await world.during(coordinator.purgeDocuments(world.db, [{ id: 'x', revisions: [x] }], {}, request()))
    await coordinator.stop()
    expect(world.calls.filter(({ verb }) => verb === 'purgeDocuments').map(({ node }) => node).sort())
      .to.deep.equal(world.nodes)
    expect(world.clock.pendingTimers).to.equal(0)
    for (const node of world.nodes) expect((await world.leavesOf('x'))[node], node).to.deep.equal([])
  })

  it('is accepted by fewer than w, and reaches the others by anti-entropy before their documents return', async () => {
    const world = new ReplicaWorld()
    const x = await write(world, 'x')
    world.isolate('c')
    const missed: string[] = []
    const coordinator = world.coordinator('a', { onMissed: (_shard, node) => { missed.push(node) } })
    const [outcome] = await coordinator.purgeDocuments(world.db, [{ id: 'x', revisions: [x] }], { w: 3 }, request())
    expect(missed).to.deep.equal(['c'])
    expect(outcome).to.deep.equal({ kind: 'purged', revisions: [x], accepted: true })
    await coordinator.stop()
    expect((await world.leavesOf('x'))['c']).to.have.length(1)
    const all = world.nodes.map(node => world.antiEntropy(node))
    for (const each of all) each.start()
    world.heal()
    await world.clock.advance(70_000)
    for (const each of all) await each.stop()
    for (const node of world.nodes) expect((await world.leavesOf('x'))[node] ?? [], node).to.deep.equal([])
  })

  it('is recorded on all replicas that answer before it is answered: a read shows what any of them has', async () => {
    const world = new ReplicaWorld()
    world.jitterTurns = 5
    const coordinator = world.coordinator('a')
    for (let turn = 0; turn < 20; turn++) {
      const x = await write(world, `x${turn}`)
      await coordinator.purgeDocuments(world.db, [{ id: `x${turn}`, revisions: [x] }], {}, request())
      const leaves = await world.leavesOf(`x${turn}`)
      for (const node of world.nodes) expect(leaves[node] ?? [], node).to.deep.equal([])
    }
    await coordinator.stop()
  })

  it('waits a moment, and no longer, for a replica that is silent', async () => {
    const world = new ReplicaWorld()
    const x = await write(world, 'x')
    world.faults.set('c', { kind: 'hang' })
    const coordinator = world.coordinator('a')
    const started = world.clock.monotonic()
    const [outcome] = await world.during(
      coordinator.purgeDocuments(world.db, [{ id: 'x', revisions: [x] }], {}, request()),
    )
    expect(outcome?.revisions).to.deep.equal([x])
    expect(world.clock.monotonic() - started).to.be.within(900, 1400)
    await world.during(coordinator.stop())
  })

  it('is not undone by a read of a replica that does not know of it yet', async () => {
    const world = new ReplicaWorld()
    const x = await write(world, 'x')
    world.isolate('c')
    const coordinator = world.coordinator('a')
    await coordinator.purgeDocuments(world.db, [{ id: 'x', revisions: [x] }], {}, request())
    world.heal()
    for (let read = 0; read < 3; read++) await coordinator.openDocument(world.db, 'x', { r: 3 }, request())
    await coordinator.stop()
    const leaves = await world.leavesOf('x')
    for (const node of ['a', 'b']) expect(leaves[node] ?? [], node).to.deep.equal([])
  })

  for (const [what, ids, deleted] of [
    ['an edit', ['b', 'a'], false], ['a deletion', ['d', 'a'], true], ['one branch of two', ['c', 'a'], false],
  ] as const) {
    it(`is refused by a node that is cut off and has missed ${what}, and leaves nothing behind`, async () => {
      const world = new ReplicaWorld()
      await storeOn(world, ['a', 'b', 'c'], ['a'])
      if (what === 'one branch of two') await storeOn(world, ['a', 'b', 'c'], ['b', 'a'])
      await storeOn(world, ['a', 'b'], ids, deleted)
      world.isolate('c')
      const coordinator = world.coordinator('c')
      const missed = `${ids.length}-${ids[0]}`
      const failure = await coordinator.purgeDocuments(world.db, [{ id: 'x', revisions: [missed] }], {}, request())
        .catch((error: unknown) => error)
      expect(failure).to.include({ status: 503 }).and.have.nested.property('headers.Retry-After')
      expect(failure).to.have.property('reason').that.includes(missed)
      await coordinator.stop()
      expect(await purgesOn(world, 'c')).to.equal(0)
      world.heal()
      const healed = world.coordinator('c')
      const purge = { id: 'x', revisions: [missed] }
      expect((await healed.purgeDocuments(world.db, [purge], {}, request()))[0]?.revisions).to.deep.equal([
        missed,
      ])
      await healed.stop()
      const left = what === 'one branch of two' ? ['2-b'] : []
      const leaves = await world.leavesOf('x')
      for (const node of world.nodes) expect((leaves[node] ?? []).map(leaf => leaf.revision), node).to.deep.equal(left)
    })
  }

  it('is refused as a whole, before anything is purged', async () => {
    const world = new ReplicaWorld({ q: 4 })
    const x = await write(world, 'x')
    world.isolate('c')
    const coordinator = world.coordinator('c')
    const requests = [
      { id: 'x', revisions: [x] }, ...['p', 'q', 'r', 's'].map(id => ({ id, revisions: ['1-unknown'] })),
    ]
    const failure = await coordinator.purgeDocuments(world.db, requests, {}, request()).catch((error: unknown) => error)
    expect(failure).to.include({ status: 503 })
    await coordinator.stop()
    for (let shard = 0; shard < 4; shard++) {
      expect((await world.store('c', shard).upkeep.replicaInfo(plainCall)).purgeSequence).to.equal(0)
    }
  })

  it('is accepted by a node that is cut off and knows the revision, and removes ancestors elsewhere', async () => {
    const world = new ReplicaWorld()
    await storeOn(world, ['a', 'b', 'c'], ['a'])
    await storeOn(world, ['a', 'c'], ['b', 'a'])
    world.isolate('c')
    const coordinator = world.coordinator('c')
    const [outcome] = await coordinator.purgeDocuments(world.db, [{ id: 'x', revisions: ['2-b'] }], {}, request())
    expect(outcome).to.deep.equal({ kind: 'purged', revisions: ['2-b'], accepted: true })
    await coordinator.stop()
    const all = world.nodes.map(node => world.antiEntropy(node))
    for (const each of all) each.start()
    world.heal()
    await world.clock.advance(70_000)
    for (const each of all) await each.stop()
    const leaves = await world.leavesOf('x')
    for (const node of world.nodes) expect(leaves[node] ?? [], node).to.deep.equal([])
  })

  it('does not purge a revision that most replicas lack, so that they stay equal when it arrives', async () => {
    const world = new ReplicaWorld()
    await storeOn(world, ['a', 'b', 'c'], ['a'])
    await storeOn(world, ['a'], ['b', 'a'])
    world.isolate('a')
    const coordinator = world.coordinator('c')
    const [outcome] = await coordinator.purgeDocuments(world.db, [{ id: 'x', revisions: ['2-b'] }], {}, request())
    expect(outcome).to.deep.equal({ kind: 'purged', revisions: [], accepted: false })
    await coordinator.stop()
    const all = world.nodes.map(node => world.antiEntropy(node))
    for (const each of all) each.start()
    world.heal()
    await world.clock.advance(70_000)
    for (const each of all) await each.stop()
    const leaves = await world.leavesOf('x')
    for (const node of world.nodes) expect(leaves[node]!.map(leaf => leaf.revision), node).to.deep.equal(['2-b'])
  })
})
