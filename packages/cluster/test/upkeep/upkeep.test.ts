import { ReplicaError } from '@sectional/core'
import { MemoryShardReplica } from '@sectional/core/shard-replica-memory'
import { expect } from 'chai'
import { parseTimeToLive } from '../../src/upkeep/time-to-live.ts'
import { Upkeep } from '../../src/upkeep/upkeep.ts'
import { bytes, edit, plainCall, ReplicaWorld } from '../replica-world.ts'

const dayMs = 86_400_000

function upkeep(world: ReplicaWorld, node: string): Upkeep {
  return new Upkeep({
    runtime: world.runtime(node), control: { node, state: () => world.state() }, replicas: world.directory(node),
    local: { replica: () => world.store(node) }, coordinator: world.coordinator(node),
  })
}

describe('upkeep', () => {
  it('forgets records of purges beyond the limit, once every replica has applied them', async () => {
    const world = new ReplicaWorld({ nodes: ['a', 'b'] })
    world.setDatabase({ ...world.db, purgedInfosLimit: 2 })
    const purges = Array.from(
      { length: 5 }, (_, i) => ({ uuid: `u${i}`, id: `d${i}`, paths: [{ start: 1, ids: ['x'] }] }),
    )
    await world.store('a').purgeDocuments({ purges }, plainCall)
    const oldest = async (): Promise<number> => (await world.store('a').upkeep.replicaInfo(plainCall)).oldestPurge
    const { history } = await world.store('a').upkeep.replicaInfo(plainCall)
    await upkeep(world, 'a').run()
    expect(await oldest(), 'the other replica has none of them').to.equal(1)
    await world.store('b')
      .purgeDocuments({ purges: purges.slice(0, 2), checkpoint: { history, sequence: 2 } }, plainCall)
    world.cut('a', 'b')
    await upkeep(world, 'a').run()
    expect(await oldest(), 'nobody knows how the other replica stands').to.equal(1)
    world.heal()
    await upkeep(world, 'a').run()
    expect(await oldest()).to.equal(3)
    await world.store('b').purgeDocuments({ purges, checkpoint: { history, sequence: 5 } }, plainCall)
    await upkeep(world, 'a').run()
    expect(await oldest(), 'the limit keeps the rest').to.equal(4)
  })

  it('goes on with the next shard when that of one shard fails', async () => {
    const world = new ReplicaWorld({ nodes: ['a'], q: 3 })
    world.setDatabase({ ...world.db, purgedInfosLimit: 1 })
    const purges = ['u', 'v'].map(uuid => ({ uuid, id: `d${uuid}`, paths: [{ start: 1, ids: ['x'] }] }))
    for (const at of [0, 1, 2]) await world.store('a', at).purgeDocuments({ purges }, plainCall)
    const trim = world.store('a', 1).trimPurges.bind(world.store('a', 1))
    world.store('a', 1).trimPurges = async () => { throw new ReplicaError('storage', 'the disk is full') }
    const oldest = (): Promise<number[]> => Promise.all([0, 1, 2].map(async at =>
      (await world.store('a', at).upkeep.replicaInfo(plainCall)).oldestPurge))
    const work = new Upkeep({
      runtime: world.runtime('a'), control: { node: 'a', state: () => world.state() }, replicas: world.directory('a'),
      local: { replica: id => world.store('a', world.db.shards.findIndex(({ range }) => range === id.range)) },
      coordinator: world.coordinator('a'),
    })
    await work.run()
    expect(await oldest()).to.deep.equal([2, 1, 2])
    world.store('a', 1).trimPurges = trim
    await work.run()
    expect(await oldest()).to.deep.equal([2, 2, 2])
  })

  it('rests between the shards of a node that has many, and ends at once when it is stopped', async () => {
    const world = new ReplicaWorld({ nodes: ['a'], q: 256 })
    let looked = 0
    const work = new Upkeep({
      runtime: world.runtime('a'), control: { node: 'a', state: () => world.state() }, replicas: world.directory('a'),
      local: { replica: () => { looked += 1; return world.store('a') } }, coordinator: world.coordinator('a'),
      options: { shardsPerRest: 100 },
    })
    void work.run()
    await world.clock.advance(0)
    expect(looked).to.equal(99)
    await world.clock.advance(100)
    expect(looked).to.equal(199)
    await work.stop()
    await world.clock.advance(1000)
    expect(looked).to.be.below(256)
  })

  it('purges documents whose time to live after the deletion is over', async () => {
    const world = new ReplicaWorld({ nodes: ['a'] })
    world.setDatabase({ ...world.db, autoPurge: { deleted_document_ttl: '2_day' } })
    const replica = new MemoryShardReplica({ history: 'h', now: () => world.clock.now() })
    const purged: string[] = []
    const work = new Upkeep({
      runtime: world.runtime('a'), control: { node: 'a', state: () => world.state() }, replicas: world.directory('a'),
      local: { replica: () => replica },
      coordinator: {
        purgeDocuments: async (_db, requests) => {
          purged.push(...requests.map(({ id }) => id))
          return requests.map(({ revisions }) => ({ kind: 'purged', revisions, accepted: false }))
        },
      },
    })
    await world.clock.advance(1_760_000_000_000 - world.clock.now())
    const remove = (id: string): Promise<unknown> =>
      replica.storeRevisions(
        { revisions: [{ id, path: { start: 2, ids: ['b', 'a'] }, deleted: true, body: bytes({}) }], revsLimit: 10 },
        plainCall,
      )
    await remove('old')
    await replica.updateDocuments({ edits: [edit('alive', null, {})], revsLimit: 10 }, plainCall)
    await world.clock.advance(dayMs)
    await remove('young')
    await work.run()
    expect(purged).to.deep.equal([])
    await world.clock.advance(2.1 * dayMs)
    await remove('new')
    await work.run()
    expect(purged).to.deep.equal(['old'])
    await work.run()
    expect(purged).to.deep.equal(['old'])
    await world.clock.advance(10 * dayMs)
    await work.run()
    expect(purged).to.deep.equal(['old', 'young', 'new'])
    await work.stop()
  })

  it('keeps a live document whose conflicts were deleted, with all of its leaves', async () => {
    const world = new ReplicaWorld({ nodes: ['a'] })
    world.setDatabase({ ...world.db, autoPurge: { deleted_document_ttl: '1_day' } })
    world.time = 1_760_000_000_000
    const store = async (id: string, branches: Readonly<Record<string, boolean>>): Promise<void> => {
      const revisions = Object.entries(branches).map(([hash, deleted]) => (
        { id, path: { start: 2, ids: [hash, 'root'] }, deleted, body: bytes({}) }))
      await world.store('a').storeRevisions({ revisions, revsLimit: 10 }, plainCall)
    }
    await store('resolved', { a: false, b: true })
    await store('in conflict', { a: false, b: false, c: true })
    await store('deleted', { a: true, b: true })
    const leavesOf = async (id: string): Promise<string[] | undefined> => (
      (await world.leavesOf(id)).a?.map(({ revision, deleted }) => deleted ? `${revision} deleted` : revision))
    await world.clock.advance(world.time + 2 * dayMs - world.clock.now())
    await upkeep(world, 'a').run()
    expect(await leavesOf('resolved')).to.deep.equal(['2-a', '2-b deleted'])
    expect(await leavesOf('in conflict')).to.deep.equal(['2-b', '2-a', '2-c deleted'])
    expect(await leavesOf('deleted')).to.deep.equal([])
  })

  it('tries tombstones again of which nothing was purged, and all of a shard that was gone or rebuilt', async () => {
    const world = new ReplicaWorld({ nodes: ['a'] })
    world.setDatabase({ ...world.db, autoPurge: { deleted_document_ttl: '1_day' } })
    const replicaOf = (history: string) => new MemoryShardReplica({ history, now: () => world.clock.now() })
    let replica = replicaOf('h')
    const asked: string[] = []
    let refused = ['second']
    const { db } = world
    let databases = [db]
    const state = () => ({ ...world.state(), databases: new Map(databases.map(each => [each.name, each])) })
    const work = new Upkeep({
      runtime: world.runtime('a'), control: { node: 'a', state }, replicas: world.directory('a'),
      local: { replica: () => replica },
      coordinator: {
        purgeDocuments: async (_db, requests) => requests.map(({ id, revisions }) => {
          asked.push(id)
          return { kind: 'purged', revisions: refused.includes(id) ? [] : revisions, accepted: false }
        }),
      },
    })
    await world.clock.advance(1_760_000_000_000 - world.clock.now())
    const fill = async (): Promise<void> => {
      for (const id of ['first', 'second', 'third']) {
        const revision = { id, path: { start: 2, ids: ['b', 'a'] }, deleted: true, body: bytes({}) }
        await replica.storeRevisions({ revisions: [revision], revsLimit: 10 }, plainCall)
      }
    }
    await fill()
    const round = async (): Promise<string[]> => { await work.run(); return asked.splice(0) }
    await world.clock.advance(1.1 * dayMs)
    expect(await round()).to.deep.equal(['first', 'second', 'third'])
    refused = []
    expect(await round()).to.deep.equal(['second', 'third'])
    expect(await round()).to.deep.equal([])
    databases = []
    expect(await round()).to.deep.equal([])
    databases = [db]
    expect(await round()).to.deep.equal(['first', 'second', 'third'])
    replica = replicaOf('rebuilt')
    await fill()
    await world.clock.advance(1.1 * dayMs)
    expect(await round()).to.deep.equal(['first', 'second', 'third'])
    await work.stop()
  })

  it('reads times to live as the API does', () => {
    expect([parseTimeToLive('3_mon'), parseTimeToLive('48_hours'), parseTimeToLive('infinity')]).to.deep.equal([
      90 * dayMs, 2 * dayMs, Infinity,
    ])
    for (const text of [5, null, '', 'soon', '-1_hour', '3_fortnights', '1_monday']) {
      expect(parseTimeToLive(text)).to.equal(null)
    }
  })

  it('begins a round in each interval until it is stopped', async () => {
    const world = new ReplicaWorld({ nodes: ['a'] })
    let looked = 0
    const intervalMs = 1000
    const work = new Upkeep({
      runtime: world.runtime('a'), control: { node: 'a', state: () => world.state() }, replicas: world.directory('a'),
      local: { replica: () => { looked += 1; return world.store('a') } }, coordinator: world.coordinator('a'),
      options: { intervalMs },
    })
    work.start()
    await world.clock.advance(0)
    expect(looked).to.equal(0)
    await world.clock.advance(10 * intervalMs)
    expect(looked).to.be.within(8, 13)
    await work.stop()
    expect(world.clock.pendingTimers).to.equal(0)
  })
})
