import { setImmediate } from 'node:timers/promises'
import { expect } from 'chai'
import { indexId, ReplicaError } from '@sectional/core'
import type { IndexDefinition, IndexReplica, IndexRow } from '@sectional/core'
import { MemoryStorage, StorageError } from '@sectional/runtime'
import type { Indexer } from '../../src/index.ts'
import { ShardHost } from '../../src/index.ts'
import { indexStoreName } from '../../src/indexes/index-store.ts'
import { collect, context, edit, shardA, shardB, shardRuntime } from '../shard-world.ts'

const definition: IndexDefinition = { kind: 'test', map: 'ids', reduce: null, options: {} }
const everything = { index: indexId(definition), through: 0, ranges: [{}], descending: false }

/** A host whose index has a row for each document. */
class World {
  storage = new MemoryStorage()
  host!: ShardHost
  /** While set, map functions wait for it. */
  gate: Promise<void> | undefined
  /** While set, reduce functions wait for it. */
  reduceGate: Promise<void> | undefined
  /** Whether a reduce function was called. */
  reducing = false
  #starts = 0

  async start(): Promise<void> {
    const indexer: Indexer = {
      versionOf: () => '1',
      map: async (_definition, documents) => {
        await this.gate
        return documents.map(({ id }) => ({ rows: [{ key: id, value: new Uint8Array(1) }] }))
      },
      groupOf: key => key,
      reduce: async (_definition, lists) => {
        this.reducing = true
        await this.reduceGate
        return lists.map(() => new Uint8Array(1))
      },
      rereduce: async () => [],
      encodeGroup: (_definition, _row, _level, value) => value,
    }
    const runtime = shardRuntime(this.storage, undefined, ++this.#starts)
    this.host = await ShardHost.open(runtime, { indexerOf: () => indexer })
  }

  async write(...ids: readonly string[]): Promise<void> {
    const engine = await this.host.create(shardA)
    await engine.updateDocuments({ edits: ids.map(id => edit(id, null, {})), revsLimit: 10 }, context)
  }

  async build(built = definition): Promise<IndexReplica> {
    const indexes = await this.host.indexes(shardA, true)
    await indexes.buildIndex({ definition: built, through: 'newest', waitMs: 5000 }, context)
    return indexes
  }

  async ids(): Promise<readonly string[] | string> {
    try {
      const rows = await collect((await this.host.indexes(shardA, false)).scanIndex(everything, context))
      return rows.filter((row): row is IndexRow => row.kind === 'row').map(({ id }) => id)
    } catch (error) {
      return error instanceof ReplicaError ? error.code : String(error)
    }
  }

  /** Returns the number of entries in the store of indexes that contain a document's id. */
  rowsOf(id: string): number {
    return this.storage.disk.entries(indexStoreName).filter(([key]) => key.includes(id)).length
  }
}

describe('the indexes of a host', () => {
  let world: World

  beforeEach(async () => {
    world = new World()
    await world.start()
  })
  afterEach(() => world.host.close())

  it('have no store until one is created', async () => {
    await world.write('a')
    expect(await world.ids()).to.equal('not_hosted')
    await (await world.host.indexes(shardA, false)).dropIndexes({ except: [] }, context)
    await world.host.drop(shardA)
    await world.host.close()
    await world.start()
    await world.host.reclaimed()
    expect(await world.storage.exists(indexStoreName)).to.equal(false)
    await world.write('a')
    await world.build()
    expect(world.storage.disk.openStores).to.include(indexStoreName)
    await world.host.close()
    expect(world.storage.disk.openStores).to.deep.equal([])
  })

  it('of an earlier process are used', async () => {
    await world.write('a')
    await world.build()
    await world.host.close()
    await world.start()
    expect(await world.ids()).to.deep.equal(['a'])
    await world.write('b')
    await world.build()
    expect(await world.ids()).to.deep.equal(['a', 'b'])
  })

  it('leave the disk with a replica that is dropped, and another replica keeps its own', async () => {
    await world.write('first')
    await world.build()
    const other = await world.host.create(shardB)
    await other.updateDocuments({ edits: [edit('second', null, {})], revsLimit: 10 }, context)
    await (await world.host.indexes(shardB, true)).buildIndex({ definition, through: 'newest', waitMs: 5000 }, context)
    expect([world.rowsOf('first') > 0, world.rowsOf('second') > 0]).to.deep.equal([true, true])
    await world.host.drop(shardA)
    await world.host.reclaimed()
    expect([world.rowsOf('first'), world.rowsOf('second') > 0]).to.deep.equal([0, true])
    expect(await world.ids()).to.equal('not_hosted')
    await world.host.create(shardA)
    expect(await world.ids()).to.equal('not_hosted')
  })

  it('leave the disk at the next start when the host ended before they were removed', async () => {
    await world.write('first')
    await world.build()
    const { disk } = world.storage
    const before = disk.entries(indexStoreName)
    await world.host.drop(shardA)
    await world.host.close()
    for (const [key, value] of before) disk.damage(indexStoreName, key, value)
    await world.start()
    await world.host.reclaimed()
    expect(world.rowsOf('first')).to.equal(0)
  })

  it('of a rebuilt replica are removed and built again', async () => {
    await world.write('a', 'b')
    await world.build()
    await world.host.rebuild(shardA)
    await world.host.reclaimed()
    expect(world.rowsOf('a')).to.equal(0)
    expect(await world.ids()).to.equal('not_hosted')
    await world.build()
    expect(await world.ids()).to.deep.equal(['a', 'b'])
  })

  it('serve a replica again whose rebuild failed', async () => {
    await world.write('a')
    await world.build()
    world.storage.disk.failNextWrite('io')
    expect(await world.host.rebuild(shardA).then(() => 'rebuilt', () => 'failed')).to.equal('failed')
    expect(await world.ids()).to.deep.equal(['a'])
    await world.write('b')
    await world.build()
    expect(await world.ids()).to.deep.equal(['a', 'b'])
  })

  it('show the builds that run, which end with the replica', async () => {
    await world.write('a', 'b')
    world.gate = new Promise(() => {})
    const building = world.build().then(() => 'built', (error: ReplicaError) => error.code)
    for (let turn = 0; turn < 20 && world.host.indexBuilds().length === 0; turn++) await setImmediate()
    const [task] = world.host.indexBuilds()
    expect(task).to.deep.include({ shard: shardA, index: indexId(definition), changesDone: 0, totalChanges: 2 })
    expect(task!.updatedOn).to.equal(task!.startedOn)
    await world.host.drop(shardA)
    expect(await building).to.equal('closed')
    await world.host.reclaimed()
    expect([world.host.indexBuilds(), world.rowsOf('a')]).to.deep.equal([[], 0])
  })

  it('end with the host while they are built', async () => {
    await world.write('a')
    world.gate = new Promise(() => {})
    const building = world.build().then(() => 'built', (error: ReplicaError) => error.code)
    for (let turn = 0; turn < 20 && world.host.indexBuilds().length === 0; turn++) await setImmediate()
    await world.host.close()
    expect(await building).to.equal('closed')
    expect(await world.ids()).to.equal('closed')
    expect(world.storage.disk.openStores).to.deep.equal([])
  })

  for (const [what, code] of [['the host closes', 'closed'], ['the replica is dropped', 'not_hosted']] as const) {
    it(`are refused when ${what} while their store is opened`, async () => {
      await world.write('a')
      const gate = Promise.withResolvers<void>()
      const open = world.storage.open.bind(world.storage)
      world.storage.open = async name => {
        if (name === indexStoreName) await gate.promise
        return open(name)
      }
      const asked = world.host.indexes(shardA, true).then(() => 'served', (error: ReplicaError) => error.code)
      await setImmediate()
      const ended = code === 'closed' ? world.host.close() : world.host.drop(shardA)
      await setImmediate()
      gate.resolve()
      expect(await asked).to.equal(code)
      await ended
    })
  }

  it('of all replicas are built again when their store is damaged', async () => {
    const shards = [shardA, shardB]
    const engines = await Promise.all(shards.map(shard => world.host.create(shard)))
    const build = async (): Promise<readonly number[]> => {
      const built = shards.map(async shard =>
        (await world.host.indexes(shard, true)).buildIndex({ definition, through: 'newest', waitMs: 5000 }, context))
      return (await Promise.all(built)).map(({ rowCount }) => rowCount)
    }
    const write = (id: string) => Promise.all(engines.map(engine =>
      engine.updateDocuments({ edits: [edit(id, null, {})], revsLimit: 10 }, context)))
    await write('a')
    expect(await build()).to.deep.equal([1, 1])
    world.storage.disk.setFaults({ failRead: store => store === indexStoreName ? 'corrupt' : undefined })
    await write('b')
    expect(await build().catch((error: unknown) => error)).to.be.instanceOf(ReplicaError)
    world.storage.disk.setFaults({})
    await write('c')
    expect(await build()).to.deep.equal([3, 3])
  })

  it('can be opened again when the disk failed at first', async () => {
    await world.write('a')
    const open = world.storage.open.bind(world.storage)
    let failures = 1
    world.storage.open = async name => {
      if (name === indexStoreName && failures-- > 0) throw new StorageError('io', 'the disk fails')
      return open(name)
    }
    const failure = await world.build().catch((error: unknown) => error)
    expect(failure).to.be.instanceOf(ReplicaError).with.property('code', 'storage')
    await world.build()
    expect(await world.ids()).to.deep.equal(['a'])
  })

  it('end with the host while a reduce function runs that does not end', async () => {
    await world.write('a')
    world.reduceGate = new Promise(() => {})
    const building = world.build({ ...definition, reduce: 'slow' })
      .then(() => 'built', (error: ReplicaError) => error.code)
    for (let turn = 0; turn < 100 && !world.reducing; turn++) await setImmediate()
    expect(world.reducing).to.equal(true)
    await world.host.close()
    expect(await building).to.equal('closed')
    expect(world.storage.disk.openStores).to.deep.equal([])
  })
})
