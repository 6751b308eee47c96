import { expect } from 'chai'
import type { ShardId } from '@sectional/core'
import { SeededRandom } from '@sectional/runtime'
import type { Peer } from '../../src/replicas/replica-access.ts'
import { UnconfirmedWrites } from '../../src/replicas/unconfirmed-writes.ts'
import { confirmedReaders } from '../../src/shard-calls/confirmed-readers.ts'
import type { ViewQuery } from '../../src/contracts/view-query.ts'
import { scanView } from '../../src/views/view-scan.ts'
import type { ViewScope } from '../../src/views/view-scope.ts'
import { edit, request } from '../replica-world.ts'
import type { Fault } from '../replica-world.ts'
import { everything, IndexWorld, testRows } from './index-world.ts'

const storesFail: Fault = { kind: 'fail', code: 'storage', verbs: ['storeRevisions'] }

/** Writes one document with w = 2 and returns the ids that a query through the same node shows. */
async function writeAndQuery(world: IndexWorld, node: string, id: string): Promise<readonly string[]> {
  const write = edit(id, null, { keys: [id], value: 1 })
  const [outcome] = await world.during(
    world.coordinator(node).updateDocuments(world.db, [write], { w: 2 }, request()))
  expect(outcome).to.deep.include({ kind: 'written', accepted: false })
  return queried(world, node)
}

async function queried(world: IndexWorld, node: string): Promise<readonly string[]> {
  return queriedBy(world, world.viewScope(node), true)
}

async function queriedBy(world: IndexWorld, scope: ViewScope, update: ViewQuery['update']): Promise<readonly string[]> {
  const answer = await world.during(scanView(scope, world.db, { ...everything, update }, request()))
  const rows = await world.during(testRows(answer.rows))
  await answer.close()
  return rows.map(({ id }) => id)
}

function lastScan(world: IndexWorld): string | undefined {
  return world.calls.findLast(({ verb }) => verb === 'scanIndex')?.node
}

describe('a query after an acknowledged write', () => {
  it('asks a replica that has the write, not that of this node, which failed to store it', async () => {
    const world = new IndexWorld()
    expect(await writeAndQuery(world, 'c', 'before')).to.deep.equal(['before'])
    expect(lastScan(world)).to.equal('c')
    world.faults.set('c', storesFail)
    expect(await writeAndQuery(world, 'c', 'new')).to.deep.equal(['before', 'new'])
    expect(lastScan(world)).not.to.equal('c')
  })

  it('with update=false is not older than an answer with update=true before', async () => {
    const world = new IndexWorld()
    const scope = world.viewScope('c')
    const query = async (update: boolean): Promise<readonly string[]> => queriedBy(world, scope, update)
    expect(await query(true)).to.deep.equal([])
    world.faults.set('c', storesFail)
    const write = edit('new', null, { keys: ['new'], value: 1 })
    await world.during(world.coordinator('c').updateDocuments(world.db, [write], { w: 2 }, request()))
    expect(await query(true)).to.deep.equal(['new'])
    expect(await query(false)).to.deep.equal(['new'])
  })

  it('asks the replica of this node again when anti-entropy has brought the write', async () => {
    const world = new IndexWorld()
    world.faults.set('c', storesFail)
    await writeAndQuery(world, 'c', 'new')
    world.faults.clear()
    const drivers = world.nodes.map(node => world.antiEntropy(node))
    for (const driver of drivers) driver.start()
    await world.clock.advance(60_000)
    expect(await queried(world, 'c')).to.deep.equal(['new'])
    await world.during(world.viewScope('c').background.idle())
    expect(await queried(world, 'c')).to.deep.equal(['new'])
    expect(lastScan(world)).to.equal('c')
    for (const driver of drivers) await driver.stop()
  })

  it('is answered by a replica that lacks the write only when no other one answers', async () => {
    const world = new IndexWorld()
    world.faults.set('c', storesFail)
    await writeAndQuery(world, 'c', 'new')
    world.isolate('c')
    expect(await queried(world, 'c')).to.deep.equal([])
  })

  it('contains it under concurrent writes, failing and delayed stores, whatever the node', async () => {
    for (let seed = 1; seed <= 6; seed++) {
      const world = new IndexWorld({ q: 2, seed })
      world.jitterTurns = 8
      const random = new SeededRandom(seed)
      const drivers = world.nodes.map(node => world.antiEntropy(node))
      for (const driver of drivers) driver.start()
      const node = world.nodes[seed % 3]!
      const acknowledged = new Set<string>()
      const write = async (id: string): Promise<void> => {
        // At most one replica fails at a time, so that one which has confirmed each write can be read.
        world.faults.clear()
        const failing = world.nodes[Math.floor(random.fraction() * 6)]
        if (failing !== undefined) world.faults.set(failing, storesFail)
        const [outcome] = await world.coordinator(node)
          .updateDocuments(world.db, [edit(id, null, { keys: [id], value: 1 })], { w: 2 }, request())
        if (outcome!.kind === 'written') acknowledged.add(id)
        const needed = [...acknowledged]
        const answer = await scanView(world.viewScope(node), world.db, everything, request())
        const found = new Set((await testRows(answer.rows)).map(row => row.id))
        await answer.close()
        expect(needed.filter(each => !found.has(each)), `seed ${seed}`).to.deep.equal([])
      }
      const writer = async (name: string): Promise<void> => {
        for (let i = 0; i < 15; i++) await write(`${name}${i}`)
      }
      await world.during(Promise.all(['k', 'l', 'm', 'n'].map(writer)))
      expect(acknowledged.size).to.be.above(40)
      for (const driver of drivers) await driver.stop()
    }
  })
})

describe('the replicas that have all acknowledged writes', () => {
  interface Prepared {
    readonly scope: ViewScope
    readonly shard: ShardId
    /** The readers of a query that begins now. */
    readonly readers: () => Promise<readonly Peer[]>
    readonly nodes: () => Promise<readonly string[]>
  }

  function prepared(world = new IndexWorld()): Prepared {
    const scope = { ...world.viewScope('c'), unconfirmed: new UnconfirmedWrites(() => world.clock.monotonic()) }
    const [place] = scope.access.places(world.db)
    const readers = (): Promise<readonly Peer[]> => {
      const needed = {
        newest: scope.unconfirmed.newest, isUsable: () => true, deadline: world.clock.monotonic() + 10_000,
      }
      return confirmedReaders(scope, place!, needed, request())
    }
    const nodes = async (): Promise<readonly string[]> => (await world.during(readers())).map(({ node }) => node)
    return { scope, shard: place!.id, readers, nodes }
  }

  function isSettled(work: Promise<unknown>): Promise<boolean> {
    return Promise.race([work.then(() => true), new Promise<boolean>(resolve => { setImmediate(resolve, false) })])
  }

  it('are all that have stored what was acknowledged, in the order in which they are read', async () => {
    const { scope, shard, nodes } = prepared()
    expect(await nodes()).to.deep.equal(['c', 'a', 'b'])
    const store = Promise.withResolvers<boolean>()
    scope.unconfirmed.acknowledged(shard, 'c', store.promise)
    expect(await nodes()).to.deep.equal(['a', 'b'])
    store.resolve(true)
    await store.promise
    expect(await nodes()).to.deep.equal(['c', 'a', 'b'])
  })

  it('are awaited when each replica lacks a write, but not for writes that came later', async () => {
    const world = new IndexWorld()
    const { scope, shard, readers } = prepared(world)
    const stores = ['a', 'b', 'c'].map(node => {
      const store = Promise.withResolvers<boolean>()
      scope.unconfirmed.acknowledged(shard, node, store.promise)
      return store
    })
    const found = readers()
    expect(await isSettled(found)).to.equal(false)
    scope.unconfirmed.acknowledged(shard, 'b', new Promise(() => {}))
    expect(await isSettled(found)).to.equal(false)
    stores[1]!.resolve(true)
    expect((await found).map(({ node }) => node)).to.deep.equal(['b'])
    // A query that begins now needs the later write, too.
    expect(scope.unconfirmed.isBehind(shard, 'b', scope.unconfirmed.newest)).to.equal(true)
    expect(world.clock.pendingTimers).to.equal(0)
  })

  it('are none after the deadline, when a store takes longer', async () => {
    const world = new IndexWorld()
    const { scope, shard, nodes } = prepared(world)
    for (const node of ['a', 'b', 'c']) scope.unconfirmed.acknowledged(shard, node, new Promise(() => {}))
    expect(await nodes()).to.deep.equal([])
    expect(world.clock.monotonic()).to.be.within(10_000, 10_500)
  })

  it('are none when every replica has failed to store a write and does not receive it soon', async () => {
    const world = new IndexWorld()
    const { scope, shard, nodes } = prepared(world)
    for (const node of ['a', 'b', 'c']) scope.unconfirmed.acknowledged(shard, node, Promise.resolve(false))
    world.isolate('c')
    const began = world.clock.monotonic()
    expect(await nodes()).to.deep.equal([])
    expect(world.clock.monotonic() - began).to.be.within(1000, scope.options.missedWaitMs + 500)
    expect(await nodes()).to.deep.equal([])
  })

  it('does not count a replica that lacks a change of another one', async () => {
    const world = new IndexWorld()
    world.faults.set('c', storesFail)
    await writeAndQuery(world, 'c', 'new')
    const { scope, shard, nodes } = prepared(world)
    scope.unconfirmed.acknowledged(shard, 'c', Promise.resolve(false))
    for (let time = 0; time < 3; time++) {
      expect(await nodes()).to.deep.equal(['a', 'b'])
      await world.clock.advance(1000)
      await world.during(scope.background.idle())
    }
  })

  it('does not count a replica that has the changes of one other replica and lacks those of another one', async () => {
    const world = new IndexWorld()
    for (const node of ['b', 'c']) world.faults.set(node, storesFail)
    const write = edit('new', null, { keys: ['new'], value: 1 })
    await world.during(world.coordinator('a').updateDocuments(world.db, [write], { w: 1 }, request()))
    world.faults.clear()
    const { scope, shard, nodes } = prepared(world)
    for (const node of ['b', 'c']) scope.unconfirmed.acknowledged(shard, node, Promise.resolve(false))
    for (let time = 0; time < 3; time++) {
      expect(await nodes()).to.deep.equal(['a'])
      await world.clock.advance(1000)
      await world.during(scope.background.idle())
    }
  })
})
