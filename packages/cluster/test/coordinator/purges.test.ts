import { expect } from 'chai'
import { edit, ReplicaWorld, request } from '../replica-world.ts'

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
    expect((await coordinator.purgeDocuments(world.db, requests, {}, request())).map(outcome => outcome.revisions)).to.deep.equal([[x], [], []])
    await coordinator.stop()
    for (const id of ['x', 'y']) {
      const opened = await coordinator.openDocument(world.db, id, { r: 3 }, request())
      expect(opened?.leaves.map(leaf => leaf.revision)).to.deep.equal(id === 'x' ? undefined : [y])
    }
    const infos = await coordinator.purgedInfos(world.db, request())
    expect(infos.map(({ id, revisions }) => `${id} ${revisions.join()}`).sort()).to.deep.equal([`none ${y}`, `x ${x},9-ffff`])
    await coordinator.stop()
  })

  it('is accepted by fewer than w, and reaches the others by anti-entropy before their documents come back', async () => {
    const world = new ReplicaWorld()
    const x = await write(world, 'x')
    world.isolate('c')
    const coordinator = world.coordinator('a')
    const [outcome] = await coordinator.purgeDocuments(world.db, [{ id: 'x', revisions: [x] }], { w: 3 }, request())
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

  it('is done on all replicas that answer before it is answered itself: a read would show what one of them still has', async () => {
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
    const [outcome] = await world.during(coordinator.purgeDocuments(world.db, [{ id: 'x', revisions: [x] }], {}, request()))
    expect(outcome?.revisions).to.deep.equal([x])
    expect(world.clock.monotonic() - started).to.be.within(900, 1400)
    await world.during(coordinator.stop())
  })

  it('does not let a read bring back what one replica has not heard of yet', async () => {
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
})
