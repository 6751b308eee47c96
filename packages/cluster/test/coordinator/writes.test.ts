import { ApiError, documentLeavesMax, type RevisionPath } from '@sectional/core'
import { expect } from 'chai'
import type { WriteOutcome } from '../../src/contracts/coordinator.ts'
import { bytes, edit, plainCall, ReplicaWorld, request } from '../replica-world.ts'

function revisionOf(outcome: WriteOutcome | undefined): string {
  if (outcome?.kind !== 'written') throw new Error(`not written: ${JSON.stringify(outcome)}`)
  return outcome.revision
}

async function caught(work: Promise<unknown>): Promise<ApiError> {
  const error = await work.then(() => null, (thrown: unknown) => thrown)
  expect(error).to.be.instanceOf(ApiError)
  return error as ApiError
}

describe('writing documents', () => {
  it('writes on the only replica without asking anybody else', async () => {
    const world = new ReplicaWorld({ nodes: ['a'] })
    const coordinator = world.coordinator('a')
    const [first] = await coordinator.updateDocuments(world.db, [edit('x', null, { v: 1 })], {}, request())
    expect(first).to.deep.equal({
      kind: 'written', revision: `1-${edit('x', null, { v: 1 }).revisionHash}`, accepted: false,
    })
    expect(world.calls).to.have.length(1)
    const [second] = await coordinator.updateDocuments(
      world.db, [edit('x', revisionOf(first), {})], { w: 2 }, request(),
    )
    expect(second).to.include({ kind: 'written', accepted: true })
    expect(await coordinator.updateDocuments(world.db, [edit('x', null, {})], {}, request())).to.deep.equal([
      { kind: 'conflict' },
    ])
  })

  it('has the first replica of the map decide, whichever node was asked', async () => {
    const world = new ReplicaWorld()
    for (const node of world.nodes) {
      world.calls.length = 0
      const coordinator = world.coordinator(node)
      const [outcome] = await coordinator.updateDocuments(world.db, [edit(`by-${node}`, null, {})], {}, request())
      await coordinator.stop()
      expect(world.calls[0]).to.include({ node: 'a', verb: 'updateDocuments' })
      const leaves = await world.leavesOf(`by-${node}`)
      for (const each of world.nodes) {
        expect(leaves[each]).to.deep.equal([{ revision: revisionOf(outcome), deleted: false }])
      }
    }
  })

  it('answers when w replicas have it on disk and finishes the others in the background', async () => {
    const world = new ReplicaWorld()
    world.faults.set('c', { kind: 'hang' })
    const missed: string[] = []
    const coordinator = world.coordinator('a', { onMissed: (_, node) => missed.push(node) })
    const [outcome] = await coordinator.updateDocuments(world.db, [edit('x', null, {})], {}, request())
    expect(outcome).to.include({ kind: 'written', accepted: false })
    expect(world.clock.monotonic()).to.equal(0)
    expect(coordinator.backgroundCalls).to.equal(1)
    await world.during(coordinator.stop())
    expect(coordinator.backgroundCalls).to.equal(0)
    expect(missed).to.deep.equal(['c'])
    expect(world.clock.pendingTimers).to.equal(0)
  })

  it('is accepted with fewer than w copies, after every replica has replied or timed out', async () => {
    const world = new ReplicaWorld()
    world.faults.set('b', { kind: 'fail', code: 'storage' })
    world.faults.set('c', { kind: 'hang', verbs: ['storeRevisions'] })
    const started = world.clock.monotonic()
    const [outcome] = await world.during(
      world.coordinator('a').updateDocuments(world.db, [edit('x', null, {})], {}, request()),
    )
    expect(outcome).to.include({ kind: 'written', accepted: true })
    expect(world.clock.monotonic() - started).to.be.at.least(15_000)
    expect(await world.metrics.get('a')!.value('sectional_quorum_writes_total', 'accepted')).to.equal(1)
  })

  it('is accepted when w exceeds n', async () => {
    const world = new ReplicaWorld()
    const [outcome] = await world.coordinator('a').updateDocuments(world.db, [edit('x', null, {})], { w: 4 }, request())
    expect(outcome).to.include({ kind: 'written', accepted: true })
    expect((await world.leavesOf('x')).c).to.have.length(1)
  })

  it('is accepted by a side of a partition that reaches one replica', async () => {
    const world = new ReplicaWorld()
    world.isolate('c')
    const [outcome] = await world.coordinator('c').updateDocuments(world.db, [edit('x', null, {})], {}, request())
    expect(outcome).to.include({ kind: 'written', accepted: true })
  })

  it('fails as a whole when no replica can be asked, and by document when one shard cannot', async () => {
    const world = new ReplicaWorld({ nodes: ['a', 'b'], q: 2, n: 1 })
    world.cut('a', 'b')
    const outcomes = await world.coordinator('a')
      .updateDocuments(world.db, ['p', 'q', 'r', 's', 't', 'u'].map(id => edit(id, null, {})), {}, request())
    expect(new Set(outcomes.map(outcome => outcome.kind))).to.deep.equal(new Set(['written', 'error']))
    expect(outcomes.find(outcome => outcome.kind === 'error')).to.include({
      status: 503, reason: 'No DB shards could be opened.',
    })
    world.faults.set('a', { kind: 'fail', code: 'overloaded' })
    expect((await caught(world.coordinator('a')
      .updateDocuments(world.db, outcomes.map((_, i) => edit(`w${i}`, null, {})), {}, request()))).status).to.equal(503)
    world.heal()
    world.faults.set('b', { kind: 'fail', code: 'overloaded' })
    expect((await caught(world.coordinator('a')
      .updateDocuments(world.db, [edit('p', null, {})], {}, request()))).headers).to.have.property('Retry-After')
  })

  it('processes the same id twice in order, across the bounds of one call', async () => {
    const world = new ReplicaWorld({ coordinator: { batchDocumentsMax: 1 } })
    const first = edit('x', null, { v: 1 })
    const outcomes = await world.coordinator('b').updateDocuments(
      world.db, [first, edit('x', `1-${first.revisionHash}`, { v: 2 }), edit('x', null, { v: 3 })], { w: 3 }, request(),
    )
    expect(outcomes.map(outcome => outcome.kind)).to.deep.equal(['written', 'written', 'conflict'])
    expect((await world.leavesOf('x')).c![0]!.revision).to.equal(revisionOf(outcomes[1]))
  })

  it('sends filling replicas what is decided and does not count them', async () => {
    const world = new ReplicaWorld()
    world.setDatabase({
      ...world.db,
      shards: world.db.shards.map(shard => ({
        ...shard, replicas: shard.replicas.map(each => ({ ...each, filling: each.node === 'c' })),
      })),
    })
    world.faults.set('b', { kind: 'fail', code: 'storage' })
    const coordinator = world.coordinator('a')
    const [outcome] = await coordinator.updateDocuments(world.db, [edit('x', null, {})], {}, request())
    expect(outcome).to.include({ kind: 'written', accepted: true })
    await coordinator.stop()
    expect((await world.leavesOf('x')).c).to.have.length(1)
  })

  /** The shard has the replicas `before` when the write begins, and all three when it is answered. */
  async function grownMeanwhile(
    before: readonly string[], fails: readonly string[] = [],
  ): Promise<{ readonly world: ReplicaWorld; readonly outcome: WriteOutcome }> {
    const world = new ReplicaWorld()
    const grown = world.db
    world.setDatabase({
      ...grown,
      shards: grown.shards.map(shard => ({
        ...shard, replicas: shard.replicas.filter(each => before.includes(each.node)),
      })),
    })
    for (const node of fails) world.faults.set(node, { kind: 'fail', code: 'storage' })
    const coordinator = world.coordinator('b')
    const writing = coordinator.updateDocuments(world.db, [edit('x', null, {})], {}, request())
    world.setDatabase(grown)
    const [outcome] = await writing
    await coordinator.stop()
    return { world, outcome: outcome! }
  }

  it('counts w by the old and the new shard map when it changes, and sends the write to the new replicas', async () => {
    const { world, outcome } = await grownMeanwhile(['a'])
    expect(outcome).to.include({ kind: 'written', accepted: false })
    for (const node of ['b', 'c']) expect((await world.leavesOf('x'))[node]).to.have.length(1)
    expect((await grownMeanwhile(['a'], ['b', 'c'])).outcome).to.include({ kind: 'written', accepted: true })
  })

  it('no longer watches, once it is answered, a replica that was added meanwhile', async () => {
    const world = new ReplicaWorld()
    const grown = world.db
    const replicas = grown.shards[0]!.replicas.filter(({ node }) => node !== 'c')
    world.setDatabase({ ...grown, shards: [{ ...grown.shards[0]!, replicas }] })
    world.faults.set('c', { kind: 'hang', verbs: ['storeRevisions'] })
    const coordinator = world.coordinator('a')
    const writing = coordinator.updateDocuments(world.db, [edit('x', null, {})], {}, request())
    world.setDatabase(grown)
    expect((await writing)[0]).to.include({ kind: 'written', accepted: false })
    await world.clock.advance(5_000)
    expect(world.calls.filter(({ node }) => node === 'c').map(({ verb }) => verb)).to.deep.equal(['storeRevisions'])
    await world.during(coordinator.stop())
  })

  it('does not reach a database of the same name that is created meanwhile', async () => {
    const world = new ReplicaWorld()
    const [shard] = world.db.shards
    const on = (...nodes: string[]) => [{ ...shard!, replicas: nodes.map(node => ({ node, filling: false })) }]
    world.setDatabase({ ...world.db, shards: on('a', 'b') })
    const coordinator = world.coordinator('a')
    const writing = coordinator.updateDocuments(world.db, [edit('x', null, {})], { w: 2 }, request())
    world.setDatabase({ ...world.db, incarnation: 'two', shards: on('a', 'c') })
    expect((await writing)[0]).to.include({ kind: 'written', accepted: false })
    await coordinator.stop()
    expect(await world.leavesOf('x')).to.deep.equal({ a: [], c: [] })
  })

  it('does not accept one copy as enough when the shard of the only replica gets more replicas meanwhile', async () => {
    const world = new ReplicaWorld()
    const grown = world.db
    world.setDatabase({
      ...grown,
      shards: grown.shards.map(shard => ({ ...shard, replicas: shard.replicas.filter(each => each.node === 'a') })),
    })
    const writing = world.coordinator('a').updateDocuments(world.db, [edit('x', null, {})], {}, request())
    world.setDatabase(grown)
    expect((await writing)[0]).to.include({ kind: 'written', accepted: true })
  })

  it('sends no further write to a node that has too many running writes', async () => {
    const world = new ReplicaWorld({ coordinator: { nodeStoresMax: 2 } })
    world.faults.set('c', { kind: 'hang' })
    const coordinator = world.coordinator('a')
    for (let i = 0; i < 5; i++) await coordinator.updateDocuments(world.db, [edit(`x${i}`, null, {})], {}, request())
    expect(world.calls.filter(call => call.node === 'c')).to.have.length(2)
    await world.during(coordinator.stop())
  })
})

describe('deciding edits', () => {
  it('asks the next replica when the first is away, and answers conflicts from there', async () => {
    const world = new ReplicaWorld()
    world.isolate('a')
    const coordinator = world.coordinator('b')
    const [outcome] = await coordinator.updateDocuments(world.db, [edit('x', null, { v: 1 })], {}, request())
    expect(outcome).to.include({ kind: 'written', accepted: false })
    expect(await world.coordinator('c')
      .updateDocuments(world.db, [edit('x', null, { v: 2 })], {}, request())).to.deep.equal([{ kind: 'conflict' }])
  })

  it('lets the next replica decide when the first is silent, and asks the silent one last for a while', async () => {
    const world = new ReplicaWorld()
    world.faults.set('a', { kind: 'hang' })
    const coordinator = world.coordinator('b')
    const [outcome] = await world.during(
      coordinator.updateDocuments(world.db, [edit('x', null, { v: 1 })], {}, request()),
    )
    expect(outcome).to.include({ kind: 'written', accepted: false })
    const started = world.clock.monotonic()
    await world.during(coordinator.updateDocuments(world.db, [edit('y', null, {})], {}, request()))
    expect(world.clock.monotonic()).to.equal(started)
    await world.during(coordinator.stop())
  })

  it('lets the first replica decide while it catches up, after it has received the leaves of the others', async () => {
    const world = new ReplicaWorld()
    world.isolate('a')
    const [first] = await world.coordinator('b').updateDocuments(world.db, [edit('x', null, { v: 1 })], {}, request())
    world.heal()
    world.store('a').catchingUp = true
    world.calls.length = 0
    const outcomes = await world.coordinator('c').updateDocuments(
      world.db, [edit('x', null, { v: 2 }), edit('x', revisionOf(first), { v: 3 }), edit('y', null, {})], { w: 3 },
      request(),
    )
    expect(outcomes.map(outcome => outcome.kind)).to.deep.equal(['conflict', 'written', 'written'])
    expect(world.calls.filter(call => call.verb === 'updateDocuments').map(call => call.node)).to.deep.equal(['a', 'a'])
    for (const leaves of Object.values(await world.leavesOf('x'))) {
      expect(leaves).to.deep.equal([{ revision: revisionOf(outcomes[1]), deleted: false }])
    }
    for (const node of world.nodes) world.store(node).catchingUp = true
    expect((await world.coordinator('b')
      .updateDocuments(world.db, [edit('z', null, {})], { w: 3 }, request()))[0]).to.include({
      kind: 'written', accepted: false,
    })
    world.isolate('b')
    expect((await world.coordinator('b')
      .updateDocuments(world.db, [edit('alone', null, {})], {}, request()))[0]).to.include({
      kind: 'written', accepted: true,
    })
  })

  it('brings a decider up to date that lacks the parent, and decides again', async () => {
    const world = new ReplicaWorld()
    world.isolate('a')
    const [first] = await world.coordinator('b').updateDocuments(world.db, [edit('x', null, { v: 1 })], {}, request())
    world.heal()
    const [second] = await world.coordinator('c')
      .updateDocuments(world.db, [edit('x', revisionOf(first), { v: 2 })], { w: 3 }, request())
    expect(second).to.include({ kind: 'written', accepted: false })
    for (const leaves of Object.values(await world.leavesOf('x'))) {
      expect(leaves).to.deep.equal([{ revision: revisionOf(second), deleted: false }])
    }
    expect(await world.metrics.get('c')!.value('sectional_edit_decisions_total', 'reviewed')).to.equal(1)
  })

  it('lets a document be created again when only the decider has missed its deletion', async () => {
    const world = new ReplicaWorld()
    const [first] = await world.coordinator('a')
      .updateDocuments(world.db, [edit('x', null, { v: 1 })], { w: 3 }, request())
    world.isolate('a')
    await world.coordinator('b').updateDocuments(world.db, [edit('x', revisionOf(first), {}, true)], {}, request())
    world.heal()
    const [again] = await world.coordinator('a')
      .updateDocuments(world.db, [edit('x', null, { v: 2 })], { w: 3 }, request())
    expect(again).to.include({ kind: 'written' })
    expect(revisionOf(again)).to.match(/^3-/)
    for (const leaves of Object.values(await world.leavesOf('x'))) {
      expect(leaves).to.deep.equal([{ revision: revisionOf(again), deleted: false }])
    }
  })

  it('compares a stand-in with the others before it decides', async () => {
    const world = new ReplicaWorld()
    const [first] = await world.coordinator('a')
      .updateDocuments(world.db, [edit('x', null, { v: 1 })], { w: 3 }, request())
    world.cut('a', 'b')
    const [second] = await world.coordinator('a').updateDocuments(
      world.db, [edit('x', revisionOf(first), { v: 2 }), edit('y', null, { v: 1 })], { w: 2 }, request(),
    )
    world.isolate('a')
    expect(await world.leavesOf('x')).to.deep.include({ b: [{ revision: revisionOf(first), deleted: false }] })
    const coordinator = world.coordinator('b')
    const outcomes = await coordinator.updateDocuments(
      world.db, [edit('x', revisionOf(first), { v: 3 }), edit('y', null, { v: 2 }), edit('z', null, {})], {}, request(),
    )
    expect(outcomes.map(outcome => outcome.kind)).to.deep.equal(['conflict', 'conflict', 'written'])
    expect((await world.leavesOf('x')).b).to.deep.equal([{ revision: revisionOf(second), deleted: false }])
    world.faults.set('c', { kind: 'hang' })
    const [alone] = await world.during(
      coordinator.updateDocuments(world.db, [edit('x', revisionOf(second), { v: 4 })], { w: 1 }, request()),
    )
    expect(alone).to.include({ kind: 'written' })
    await world.during(coordinator.stop())
  })

  it('reports a conflict for a parent that no replica has and for one that was replaced', async () => {
    const world = new ReplicaWorld()
    const coordinator = world.coordinator('b')
    const [first] = await coordinator.updateDocuments(world.db, [edit('x', null, { v: 1 })], { w: 3 }, request())
    await coordinator.updateDocuments(world.db, [edit('x', revisionOf(first), { v: 2 })], { w: 3 }, request())
    const outcomes = await coordinator.updateDocuments(
      world.db, [edit('x', revisionOf(first), { v: 3 }), edit('x', '1-unknown', {}), edit('x', null, {})], {},
      request(),
    )
    expect(outcomes.map(outcome => outcome.kind)).to.deep.equal(['conflict', 'conflict', 'conflict'])
  })

  it('leaves one winner and no conflict branch of concurrent edits through three coordinators', async () => {
    for (let seed = 1; seed <= 10; seed++) await editConcurrently(seed, () => {})
  })

  it('leaves no conflict branch while replicas begin and end to catch up', async () => {
    for (let seed = 1; seed <= 10; seed++) {
      await editConcurrently(seed, (world, turn) => {
        const store = world.store(world.nodes[turn % 3]!, turn % 2)
        store.catchingUp = !store.catchingUp
      })
    }
  })
})

/** Edits the same documents concurrently through three coordinators. `between` runs before each edit. */
async function editConcurrently(seed: number, between: (world: ReplicaWorld, turn: number) => void): Promise<void> {
  const world = new ReplicaWorld({ seed, q: 2 })
  world.jitterTurns = 3
  const coordinators = world.nodes.map(node => world.coordinator(node))
  const ids = ['p', 'q', 'r', 's']
  const acknowledged = new Map<string, number>()
  let turn = 0
  await Promise.all(coordinators.flatMap((coordinator, writer) => ids.map(async id => {
    for (let round = 0; round < 6; round++) {
      const opened = await coordinator.openDocument(world.db, id, {}, request())
      between(world, turn++)
      const [outcome] = await coordinator.updateDocuments(
        world.db, [edit(id, opened?.leaves[0]?.revision ?? null, { writer, round, seed })], {}, request(),
      )
      if (outcome!.kind === 'written') acknowledged.set(id, (acknowledged.get(id) ?? 0) + 1)
    }
  })))
  for (const coordinator of coordinators) await coordinator.stop()
  for (const id of ids) {
    for (const shard of [0, 1]) {
      for (const leaves of Object.values(await world.leavesOf(id, shard))) {
        if (leaves.length === 0) continue
        expect(leaves, `${id} of seed ${seed}`).to.have.length(1)
        expect(Number(leaves[0]!.revision.split('-')[0])).to.equal(acknowledged.get(id))
      }
    }
  }
}

describe('storing revisions with their history', () => {
  it('merges revisions on all replicas, and accepts them again without an effect', async () => {
    const world = new ReplicaWorld({ q: 4 })
    const writes = ['p', 'q', 'r'].map(id => ({
      id, path: { start: 2, ids: ['b', 'a'] }, deleted: false, body: bytes({ id }),
    }))
    const coordinator = world.coordinator('a')
    for (let i = 0; i < 2; i++) {
      const outcomes = await coordinator.storeRevisions(world.db, writes, { w: 3 }, request())
      expect(outcomes).to.deep.equal(writes.map(() => ({ kind: 'written', revision: '2-b', accepted: false })))
    }
  })

  it('joins a revision to distant ancestors, but not to those beyond the limit of a history', async () => {
    const world = new ReplicaWorld()
    const coordinator = world.coordinator('a')
    const history = Array.from({ length: 20_000 }, (_, index) => `${20_000 - index}`)
    const store = (id: string, path: RevisionPath) => {
      const write = { id, path, deleted: false, body: bytes({}) }
      return coordinator.storeRevisions(world.db, [write], { w: 3 }, request())
    }
    for (const [id, generation, leaves] of [['near', 12_000, 1], ['far', 500, 2]] as const) {
      await store(id, { start: generation, ids: [`${generation}`] })
      await store(id, { start: 20_000, ids: history })
      expect((await world.leavesOf(id)).a, id).to.have.length(leaves)
    }
  })

  it('refuses a new branch of a document that has too many, in whichever batch, and stores the others', async () => {
    const world = new ReplicaWorld({ coordinator: { batchDocumentsMax: 2 } })
    const write = (id: string, hash: string) => (
      { id, path: { start: 1, ids: [hash] }, deleted: false, body: bytes({}) })
    await world.store('b').storeRevisions({
      revisions: Array.from({ length: documentLeavesMax }, (_, index) => write('full', `${index}`)), revsLimit: 1000,
    }, plainCall)
    const writes = [write('full', 'x'), write('full', '1'), write('other', 'x')]
    for (const sent of [writes, writes.toReversed()]) {
      const outcomes = await world.coordinator('a').storeRevisions(world.db, sent, { w: 3 }, request())
      const [refused, known, other] = writes.map(each => outcomes[sent.indexOf(each)])
      expect(refused).to.include({ kind: 'error', error: 'document_too_large', status: 413 })
      expect([known, other]).to.deep.equal([
        { kind: 'written', revision: '1-1', accepted: false }, { kind: 'written', revision: '1-x', accepted: false },
      ])
    }
    expect((await world.leavesOf('full')).b).to.have.length(documentLeavesMax)
  }).timeout(60_000)

  it('is accepted with fewer than w copies, and fails when no replica stores', async () => {
    const world = new ReplicaWorld()
    const writes = [{ id: 'x', path: { start: 1, ids: ['a'] }, deleted: false, body: bytes({}) }]
    world.faults.set('b', { kind: 'fail', code: 'storage' })
    world.faults.set('c', { kind: 'fail', code: 'storage' })
    expect((await world.coordinator('a').storeRevisions(world.db, writes, {}, request()))[0]).to.include({
      accepted: true,
    })
    world.faults.set('a', { kind: 'fail', code: 'storage' })
    expect((await caught(world.coordinator('a').storeRevisions(world.db, writes, {}, request()))).status).to.equal(507)
  })

  it('cuts the histories of edits to the limit on all replicas', async () => {
    const world = new ReplicaWorld()
    world.setDatabase({ ...world.db, revsLimit: 2 })
    const coordinator = world.coordinator('a')
    let parent: string | null = null
    for (let value = 0; value < 4; value++) {
      const [outcome] = await coordinator.updateDocuments(world.db, [edit('x', parent, { value })], { w: 3 }, request())
      parent = revisionOf(outcome)
    }
    for (const node of world.nodes) {
      const opened = await world.store(node).openDocument({ id: 'x', body: false, tree: true }, plainCall)
      expect(opened!.tree!.map(({ path }) => path.ids.length), node).to.deep.equal([2])
    }
  })
})
