import { ApiError, ReplicaError } from '@sectional/core'
import type { MemoryShardReplica } from '@sectional/core/shard-replica-memory'
import { expect } from 'chai'
import { bytes, edit, plainCall, ReplicaWorld, request, text } from '../replica-world.ts'

async function put(
  world: ReplicaWorld, nodes: readonly string[], id: string, ids: readonly string[], value: unknown, deleted = false,
  revsLimit = 1000,
): Promise<string> {
  for (const node of nodes) {
    await world.store(node).storeRevisions(
      { revisions: [{ id, path: { start: ids.length, ids }, deleted, body: bytes(value) }], revsLimit }, plainCall,
    )
  }
  return `${ids.length}-${ids[0]}`
}

/** Fails like a node whose answer would be larger than a message may be. */
function refuseMany(replica: MemoryShardReplica): void {
  const open = replica.openRevisions.bind(replica)
  replica.openRevisions = async (requests, call) => {
    if (requests.length > 1) throw new ReplicaError('protocol', 'request it in parts')
    return open(requests, call)
  }
}

/**
 * Makes a world in which only the last revision keeps its body. A revision that only b has is replaced on all nodes
 * when b is first asked for bodies.
 */
async function replacedWhenBodiesAreAsked(): Promise<{ readonly world: ReplicaWorld; readonly newest: string }> {
  const world = new ReplicaWorld()
  const edit = (nodes: readonly string[], ids: readonly string[]): Promise<string> =>
    put(world, nodes, 'x', ids, { v: ids[0] }, false, 1)
  await edit(['a', 'b', 'c'], ['r1'])
  await edit(['b'], ['r2', 'r1'])
  const store = world.store('b')
  const open = store.openRevisions.bind(store)
  let replaced = false
  store.openRevisions = async (requests, call) => {
    if (!replaced) await edit(['a', 'b', 'c'], ['r3', 'r2', 'r1'])
    replaced = true
    return open(requests, call)
  }
  return { world, newest: '3-r3' }
}

describe('reading a document', () => {
  it('answers from the only replica without asking anybody else', async () => {
    const world = new ReplicaWorld({ nodes: ['a'] })
    await put(world, ['a'], 'x', ['r'], { v: 1 })
    const coordinator = world.coordinator('a')
    const opened = await coordinator.openDocument(world.db, 'x', {}, request())
    expect(text(opened!.body)).to.equal('{"v":1}')
    expect(world.calls).to.have.length(1)
    expect(world.clock.pendingTimers).to.equal(0)
    expect(await coordinator.openDocument(world.db, 'none', {}, request())).to.equal(null)
  })

  it('asks as many replicas as r needs, and takes the body from the local one', async () => {
    const world = new ReplicaWorld()
    await put(world, ['a', 'b', 'c'], 'x', ['r'], { v: 1 })
    const opened = await world.coordinator('b').openDocument(world.db, 'x', { tree: true }, request())
    expect(text(opened!.body)).to.equal('{"v":1}')
    expect(opened!.tree).to.have.length(1)
    expect(world.calls.map(call => call.node)).to.deep.equal(['b', 'a'])
    world.calls.length = 0
    await world.coordinator('b').openDocument(world.db, 'x', { r: 3 }, request())
    expect(world.calls.map(call => call.node).sort()).to.deep.equal(['a', 'b', 'c'])
    expect(world.clock.pendingTimers).to.equal(0)
  })

  it('answers with the newest revision when the local replica is stale, and repairs it', async () => {
    const world = new ReplicaWorld()
    await put(world, ['a', 'b', 'c'], 'x', ['r1'], { v: 1 })
    const newest = await put(world, ['b', 'c'], 'x', ['r2', 'r1'], { v: 2 })
    const coordinator = world.coordinator('a')
    const opened = await coordinator.openDocument(world.db, 'x', {}, request())
    expect(opened!.leaves).to.deep.equal([{ revision: newest, deleted: false }])
    expect(text(opened!.body)).to.equal('{"v":2}')
    await coordinator.stop()
    expect((await world.leavesOf('x')).a).to.deep.equal(opened!.leaves)
    expect(await world.metrics.get('a')!.value('sectional_read_repairs_total', 'repaired')).to.equal(1)
    expect(await world.metrics.get('a')!.value('sectional_quorum_reads_total', 'merged')).to.equal(1)
  })

  it('repairs a document each time that a replica is stale', async () => {
    const world = new ReplicaWorld()
    const coordinator = world.coordinator('a')
    await put(world, ['a', 'b', 'c'], 'x', ['r1'], { v: 1 })
    for (const ids of [['r2', 'r1'], ['r3', 'r2', 'r1']]) {
      const newest = await put(world, ['b', 'c'], 'x', ids, { v: ids.length })
      await coordinator.openDocument(world.db, 'x', {}, request())
      await world.clock.advance(1000)
      expect((await world.leavesOf('x')).a).to.deep.equal([{ revision: newest, deleted: false }])
    }
    await coordinator.stop()
  })

  it('repairs a document again whose replicas differ anew while it is repaired', async () => {
    const world = new ReplicaWorld()
    const coordinator = world.coordinator('a')
    await put(world, ['a', 'b', 'c'], 'x', ['r1'], { v: 1 })
    await put(world, ['b', 'c'], 'x', ['r2', 'r1'], { v: 2 })
    const store = world.store('a')
    const storeRevisions = store.storeRevisions.bind(store)
    const begun = Promise.withResolvers<void>()
    const released = Promise.withResolvers<void>()
    store.storeRevisions = async (sent, call) => {
      begun.resolve()
      await released.promise
      return storeRevisions(sent, call)
    }
    await coordinator.openDocument(world.db, 'x', {}, request())
    await begun.promise
    const newest = await put(world, ['b', 'c'], 'x', ['r3', 'r2', 'r1'], { v: 3 })
    await coordinator.openDocument(world.db, 'x', {}, request())
    released.resolve()
    await world.clock.advance(1000)
    expect((await world.leavesOf('x')).a).to.deep.equal([{ revision: newest, deleted: false }])
    await coordinator.stop()
  })

  it('shows a document that one of r replicas does not know, and a delete that one has missed', async () => {
    const world = new ReplicaWorld()
    await put(world, ['b', 'c'], 'new', ['r1'], { v: 1 })
    await put(world, ['a', 'b', 'c'], 'gone', ['r1'], { v: 1 })
    const tombstone = await put(world, ['b', 'c'], 'gone', ['r2', 'r1'], {}, true)
    const coordinator = world.coordinator('a')
    expect(text((await coordinator.openDocument(world.db, 'new', {}, request()))!.body)).to.equal('{"v":1}')
    expect((await coordinator.openDocument(world.db, 'gone', {}, request()))!.leaves).to.deep.equal(
      [{ revision: tombstone, deleted: true }],
    )
    await coordinator.stop()
    expect((await world.leavesOf('new')).a).to.have.length(1)
  })

  it('shows both branches when replicas hold different ones, winner first', async () => {
    const world = new ReplicaWorld()
    await put(world, ['a', 'b', 'c'], 'x', ['r1'], {})
    await put(world, ['a'], 'x', ['ra', 'r1'], { v: 'a' })
    await put(world, ['b'], 'x', ['rb', 'r1'], { v: 'b' })
    const coordinator = world.coordinator('a')
    const opened = await coordinator.openDocument(world.db, 'x', { tree: true }, request())
    expect(opened!.leaves.map(leaf => leaf.revision)).to.deep.equal(['2-rb', '2-ra'])
    expect(opened!.tree!.map(branch => branch.path.ids)).to.deep.equal([['rb', 'r1'], ['ra', 'r1']])
    expect(text(opened!.body)).to.equal('{"v":"b"}')
    await coordinator.stop()
    const leaves = await world.leavesOf('x')
    expect(leaves.a).to.deep.equal(opened!.leaves)
    expect(leaves.c).to.deep.equal(opened!.leaves)
  })

  it('shows the branch of a replica that answers once and then no more', async () => {
    const world = new ReplicaWorld()
    await put(world, ['a', 'b', 'c'], 'x', ['r1'], {})
    await put(world, ['a'], 'x', ['ra', 'r1'], { v: 'a' })
    await put(world, ['b'], 'x', ['rb', 'r1'], { v: 'b' })
    const store = world.store('b')
    const open = store.openDocument.bind(store)
    let asked = 0
    store.openDocument = async (sent, call) => {
      if (asked++ > 0) throw new ReplicaError('storage', 'the disk fails')
      return open(sent, call)
    }
    const coordinator = world.coordinator('a')
    const opened = await coordinator.openDocument(world.db, 'x', {}, request())
    expect(opened!.leaves.map(({ revision }) => revision)).to.deep.equal(['2-rb', '2-ra'])
    expect(asked).to.be.above(1)
    await coordinator.stop()
  })

  it('finds a document whose winner is replaced, and its body dropped, between two reads', async () => {
    const { world, newest } = await replacedWhenBodiesAreAsked()
    const opened = await world.coordinator('a').openDocument(world.db, 'x', { r: 2 }, request())
    expect(opened!.leaves[0]).to.deep.equal({ revision: newest, deleted: false })
    expect(text(opened!.body)).to.equal('{"v":"r3"}')
  })

  it('gives the leaves without a body when the body is lost everywhere', async () => {
    const world = new ReplicaWorld()
    await put(world, ['a', 'b', 'c'], 'x', ['r1'], {})
    for (const node of world.nodes) {
      const store = world.store(node)
      const open = store.openDocument.bind(store)
      store.openDocument = async (asked, call) => {
        const { body: lost, ...snapshot } = (await open(asked, call))!
        return snapshot
      }
      store.openRevisions = async requests =>
        requests.map(({ revisions }) => [...revisions].map(revision => ({ kind: 'missing', revision })))
    }
    const opened = await world.coordinator('a').openDocument(world.db, 'x', {}, request())
    expect(opened!.leaves.map(({ revision }) => revision)).to.deep.equal(['1-r1'])
    expect(opened).not.to.have.property('body')
  })

  it('reads from other replicas when some are cut off, fail or do not hold the shard', async () => {
    const world = new ReplicaWorld()
    await put(world, ['a', 'b', 'c'], 'x', ['r'], { v: 1 })
    world.faults.set('a', { kind: 'fail', code: 'storage' })
    world.cut('a', 'b')
    const opened = await world.coordinator('a').openDocument(world.db, 'x', {}, request())
    expect(text(opened!.body)).to.equal('{"v":1}')
    expect(await world.metrics.get('a')!.value('sectional_quorum_reads_total', 'degraded')).to.equal(1)
  })

  it('does not wait for a silent replica longer than the hedge, and asks it last afterwards', async () => {
    const world = new ReplicaWorld()
    await put(world, ['a', 'b', 'c'], 'x', ['r'], { v: 1 })
    world.faults.set('a', { kind: 'hang' })
    const coordinator = world.coordinator('b')
    const started = world.clock.monotonic()
    await world.during(coordinator.openDocument(world.db, 'x', {}, request()))
    expect(world.clock.monotonic() - started).to.be.within(200, 400)
    world.calls.length = 0
    const again = world.clock.monotonic()
    await world.during(coordinator.openDocument(world.db, 'x', {}, request()))
    expect(world.clock.monotonic() - again).to.equal(0)
    expect(world.calls.map(call => call.node)).to.deep.equal(['b', 'c'])
  })

  it('answers with fewer than r replies when all other replicas are silent', async () => {
    const world = new ReplicaWorld()
    await put(world, ['a', 'b', 'c'], 'x', ['r'], { v: 1 })
    for (const node of ['a', 'c']) world.faults.set(node, { kind: 'hang' })
    const opened = await world.during(world.coordinator('b').openDocument(world.db, 'x', {}, request()))
    expect(text(opened!.body)).to.equal('{"v":1}')
    await world.clock.advance(20_000)
    expect(world.clock.pendingTimers).to.equal(0)
  })

  it('gives the reason when no replica answers', async () => {
    const cases = [
      [['unreachable', 'not_hosted', 'closed'], 503, 'No DB shards could be opened.'],
      [['overloaded', 'overloaded', 'unreachable'], 503, undefined],
      [['storage', 'overloaded', 'unreachable'], 507, undefined],
      [
        ['timeout', 'timeout', 'unreachable'], 500,
        'The request could not be processed in a reasonable amount of time.',
      ],
    ] as const
    for (const [codes, status, reason] of cases) {
      const world = new ReplicaWorld()
      codes.forEach((code, i) => world.faults.set(world.nodes[i]!, { kind: 'fail', code }))
      const error = await world.coordinator('a').openDocument(world.db, 'x', {}, request())
        .then(() => null, (thrown: unknown) => thrown)
      expect(error).to.be.instanceOf(ApiError)
      expect((error as ApiError).status).to.equal(status)
      if (reason !== undefined) expect((error as ApiError).reason).to.equal(reason)
      if (status === 503) expect((error as ApiError).headers).to.have.property('Retry-After')
    }
  })
})

describe('reading revisions', () => {
  it('opens every leaf of the merged tree, and null for an unknown document', async () => {
    const world = new ReplicaWorld()
    await put(world, ['a', 'c'], 'x', ['ra'], { v: 'a' })
    await put(world, ['b', 'c'], 'x', ['rb'], { v: 'b' })
    const coordinator = world.coordinator('a')
    const opened = await coordinator.openRevisions(world.db, 'x', { revisions: 'leaves', latest: false }, request())
    expect(opened!.map(each => each.kind === 'found' && text(each.revision.body))).to.deep.equal([
      '{"v":"b"}', '{"v":"a"}',
    ])
    const leaves = await coordinator.openRevisions(world.db, 'none', { revisions: 'leaves', latest: false }, request())
    expect(leaves).to.equal(null)
  })

  it('opens the new leaves when the leaves that it read were replaced', async () => {
    const { world } = await replacedWhenBodiesAreAsked()
    const opened = await world.coordinator('a')
      .openRevisions(world.db, 'x', { revisions: 'leaves', latest: false, r: 2 }, request())
    expect(opened!.map(each => each.kind)).to.deep.equal(opened!.map(() => 'found'))
    expect(opened!.map(each => each.kind === 'found' && text(each.revision.body))).to.include('{"v":"r3"}')
  })

  it('looks for a named revision on other replicas, and follows it to its leaves on request', async () => {
    const world = new ReplicaWorld()
    await put(world, ['a', 'b', 'c'], 'x', ['r1'], { v: 1 })
    await put(world, ['b'], 'x', ['r2', 'r1'], { v: 2 })
    const coordinator = world.coordinator('a')
    const named = await coordinator.openRevisions(
      world.db, 'x', { revisions: ['2-r2', '7-none'], latest: false }, request(),
    )
    expect(named!.map(each => each.kind)).to.deep.equal(['found', 'missing'])
    const latest = await coordinator.openRevisions(
      world.db, 'x', { revisions: ['1-r1', '7-none'], latest: true, r: 2 }, request(),
    )
    expect(latest!.map(each =>
      each.kind === 'found' ? `${each.revision.path.start}-${each.revision.path.ids[0]}` : each.kind)).to.deep.equal([
      '2-r2', 'missing',
    ])
  })

  it('opens each named revision, in the order of the names, when no replica has all of them', async () => {
    const world = new ReplicaWorld()
    const names: string[] = []
    for (const node of world.nodes) names.push(await put(world, [node], 'x', [`of-${node}`], { node }))
    for (const revisions of [names, names.toReversed()]) {
      const opened = await world.coordinator('a')
        .openRevisions(world.db, 'x', { revisions, latest: false, r: 3 }, request())
      expect(opened!.map(each => each.kind === 'found' ? `1-${each.revision.path.ids[0]}` : each.kind))
        .to.deep.equal(revisions)
    }
  })

  it('reports a revision as missing only if a majority lacks it, when the caller asks for that', async () => {
    const world = new ReplicaWorld()
    await put(world, ['b', 'c'], 'x', ['r1'], { v: 1 })
    const open = async (revision: string): Promise<string | number> => {
      const named = { revisions: [revision], latest: false, r: 1000, majority: true }
      return world.coordinator('a').openRevisions(world.db, 'x', named, request())
        .then(opened => opened![0]!.kind, (error: ApiError) => error.status)
    }
    expect(await open('1-r1')).to.equal('found')
    expect(await open('1-none')).to.equal('missing')
    world.faults.set('b', { kind: 'fail', code: 'unreachable' })
    expect(await open('1-none')).to.equal('missing')
    world.faults.set('c', { kind: 'fail', code: 'unreachable' })
    expect(await open('1-r1')).to.equal(503)
  })

  it('finds a named revision that one replica alone has, as a feed may show it before the others have it', async () => {
    const world = new ReplicaWorld()
    await put(world, ['c'], 'new', ['r1'], { v: 1 })
    await put(world, ['a', 'b', 'c'], 'edited', ['r1'], { v: 1 })
    await put(world, ['c'], 'edited', ['r2', 'r1'], { v: 2 })
    const coordinator = world.coordinator('a')
    const asked = [{ id: 'new', revisions: ['1-r1'] }, { id: 'edited', revisions: ['2-r2'] }]
    for (const latest of [false, true]) {
      const together = await coordinator.openManyRevisions(
        world.db, asked.map(each => ({ ...each, latest })), {}, request(),
      )
      const alone = await Promise.all(
        asked.map(({ id, revisions }) => coordinator.openRevisions(world.db, id, { revisions, latest }, request())),
      )
      for (const opened of [together, alone]) {
        expect(opened.map(each => each?.map(({ kind }) => kind)), `latest ${latest}`).to.deep.equal([
          ['found'], ['found'],
        ])
      }
    }
    await coordinator.stop()
  })

  it('does not wait for a replica that is known to be silent when the others lack a revision', async () => {
    const world = new ReplicaWorld()
    await put(world, ['a', 'b', 'c'], 'x', ['r1'], {})
    world.faults.set('c', { kind: 'hang' })
    const coordinator = world.coordinator('a')
    const open = (latest: boolean) =>
      world.during(coordinator.openRevisions(world.db, 'x', { revisions: ['7-none'], latest }, request()))
    await open(true)
    const before = world.clock.monotonic()
    for (const latest of [true, false]) expect((await open(latest))!.map(({ kind }) => kind)).to.deep.equal(['missing'])
    expect(world.clock.monotonic() - before).to.be.below(100)
    await world.during(coordinator.stop())
  })

  it('opens revisions of many documents as it opens them one at a time, also where replicas differ', async () => {
    const world = new ReplicaWorld()
    for (let index = 0; index < 6; index++) await put(world, ['a', 'b', 'c'], `same-${index}`, ['r1'], { index })
    await put(world, ['a', 'b', 'c'], 'stale', ['r1'], { v: 1 })
    await put(world, ['b', 'c'], 'stale', ['r2', 'r1'], { v: 2 })
    await put(world, ['b'], 'elsewhere', ['r1'], { v: 1 })
    const ids = [...Array.from({ length: 6 }, (_, index) => `same-${index}`), 'stale', 'elsewhere', 'none', 'same-0']
    for (const latest of [false, true]) {
      for (const revisions of ['leaves', ['1-r1'], ['1-r1', '7-none']] as const) {
        const coordinator = world.coordinator('a')
        const together = await coordinator.openManyRevisions(
          world.db, ids.map(id => ({ id, revisions, latest })), {}, request(),
        )
        const alone = await Promise.all(
          ids.map(id => coordinator.openRevisions(world.db, id, { revisions, latest }, request())),
        )
        expect(together, `${revisions} ${latest}`).to.deep.equal(alone)
      }
    }
  })

  it('opens many documents with one call to each replica, and each alone when they are too many for one', async () => {
    const world = new ReplicaWorld()
    const ids = Array.from({ length: 20 }, (_, index) => `x-${index}`)
    for (const id of ids) await put(world, ['a', 'b', 'c'], id, ['r1'], { id })
    const open = (latest: boolean) =>
      world.coordinator('a')
        .openManyRevisions(world.db, ids.map(id => ({ id, revisions: ['1-r1'], latest })), {}, request())
    world.calls.length = 0
    const named = await open(false)
    expect(named.map(opened => opened![0]!.kind)).to.deep.equal(ids.map(() => 'found'))
    expect(world.calls.map(({ node }) => node)).to.deep.equal(['a'])
    world.calls.length = 0
    expect(await open(true)).to.deep.equal(named)
    expect(world.calls.map(({ node }) => node)).to.deep.equal(['a', 'b'])
    for (const node of world.nodes) refuseMany(world.store(node))
    expect(await open(true)).to.deep.equal(named)
    expect(await open(false)).to.deep.equal(named)
  })

  it('opens large documents up to a limit of bytes, and the others when they are requested again', async () => {
    const world = new ReplicaWorld()
    const text = 'x'.repeat(600_000)
    const ids = Array.from({ length: 6 }, (_, index) => `x-${index}`)
    for (const id of ids) await put(world, ['a', 'b', 'c'], id, ['r1'], { id, text })
    await put(world, ['a'], 'x-1', ['r2', 'r1'], { text })
    const coordinator = world.coordinator('b')
    for (const [latest, refused] of [[false, false], [true, false], [false, true]]) {
      if (refused) for (const node of world.nodes) refuseMany(world.store(node))
      const opened: string[] = []
      for (let calls = 1; opened.length < ids.length; calls++) {
        const left = ids.slice(opened.length)
        const answers = await coordinator.openManyRevisions(
          world.db, left.map(id => ({ id, revisions: 'leaves', latest: latest! })), {}, request(),
        )
        const given = answers.findIndex(answer => answer === undefined)
        expect(given, `call ${calls}`).to.not.equal(0)
        for (const [answer] of answers.slice(0, given < 0 ? undefined : given).map(answer => answer!)) {
          opened.push(answer!.kind === 'found' ? answer!.revision.id : '')
        }
        expect(calls).to.be.below(5)
      }
      expect(opened).to.deep.equal(ids)
    }
    await coordinator.stop()
  })

  it('reports a revision as missing unless a majority has it', async () => {
    const world = new ReplicaWorld({ q: 2 })
    const coordinator = world.coordinator('a')
    await coordinator.updateDocuments(world.db, [edit('x', null, {}), edit('y', null, {})], { w: 3 }, request())
    const [x, y] = await coordinator.diffRevisions(
      world.db,
      [{ id: 'x', revisions: ['1-none', '3-none'] }, { id: 'y', revisions: [`1-${edit('y', null, {}).revisionHash}`] }],
      request(),
    )
    expect(x!.missing).to.deep.equal(['1-none', '3-none'])
    expect(x!.possibleAncestors).to.deep.equal([`1-${edit('x', null, {}).revisionHash}`])
    expect(y!.missing).to.deep.equal([])
    const one = new ReplicaWorld()
    await put(one, ['b'], 'x', ['r'], {})
    expect((await one.coordinator('a')
      .diffRevisions(one.db, [{ id: 'x', revisions: ['1-r'] }], request()))[0]!.missing).to.deep.equal(['1-r'])
  })
})
