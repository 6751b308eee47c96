import { getEventListeners } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import { expect } from 'chai'
import { indexId } from '@sectional/core'
import type { BuildIndexReply, ChangeReplica, IndexDefinition, IndexRow, RowBound } from '@sectional/core'
import { MemoryShardReplica } from '@sectional/core/shard-replica-memory'
import { ManualClock, MemoryStorage, RealClock, SeededRandom, Turns } from '@sectional/runtime'
import { BuildQueue, buildSliceMs, shortBuildMs } from '../../src/indexes/build-queue.ts'
import { IndexKeys } from '../../src/indexes/index-keys.ts'
import type { IndexOptions } from '../../src/indexes/index-options.ts'
import { indexStoreName, IndexStore } from '../../src/indexes/index-store.ts'
import type { Indexer } from '../../src/indexes/indexer.ts'
import { ShardIndexes } from '../../src/indexes/shard-indexes.ts'
import { collect, context, edit, silentLog } from '../shard-world.ts'

const definition: IndexDefinition = { kind: 'test', map: 'x', reduce: 'count', options: {} }
const other: IndexDefinition = { ...definition, map: 'y' }
const index = indexId(definition)
/** No build counts as short. */
const oneAtATime = { runningMax: 1, shortChangesMax: 0 }
const everything = { index, through: 0, ranges: [{}], descending: false }

class World {
  readonly replica = new MemoryShardReplica({ history: 'one' })
  readonly mapped: string[] = []
  storage = new MemoryStorage()
  options: Partial<IndexOptions> = {}
  store!: IndexStore
  indexes!: ShardIndexes
  indexer: Indexer = {
    versionOf: () => '1',
    map: async (_definition, documents) => documents.map(({ id }) => {
      this.mapped.push(id)
      return { rows: [{ key: id, value: Buffer.from(`value of ${id}`) }] }
    }),
    groupOf: (key, level) => key.slice(0, level),
    reduce: async (_definition, lists) => lists.map(rows => Buffer.from(String(rows.length))),
    rereduce: async (_definition, lists) => lists.map(values =>
      Buffer.from(String(values.reduce((sum, value) => sum + Number(Buffer.from(value)), 0)))),
    encodeGroup: (_definition, _row, _level, value) => value,
  }
  #starts = 0

  async start(queue = new BuildQueue(new RealClock()), replica: ChangeReplica = this.replica): Promise<this> {
    const random = new SeededRandom(++this.#starts)
    const clock = new RealClock()
    this.store = await IndexStore.open({ storage: this.storage, log: silentLog, random, clock, options: this.options })
    this.indexes = new ShardIndexes({
      owner: 'shard', database: 'db',
      store: this.store, replica, indexer: this.indexer, queue, clock, turns: new Turns(clock),
    })
    return this
  }

  async stop(): Promise<void> {
    await this.indexes.close()
    await this.store.close()
  }

  async write(...ids: readonly string[]): Promise<void> {
    await this.replica.updateDocuments({ edits: ids.map(id => edit(id, null, {})), revsLimit: 10 }, context)
  }

  build(built = definition, waitMs = 5000): Promise<BuildIndexReply> {
    return this.indexes.buildIndex({ definition: built, through: 'newest', waitMs }, context)
  }

  async keys(): Promise<readonly string[]> {
    const rows = await collect(this.indexes.scanIndex(everything, context))
    return rows.filter((row): row is IndexRow => row.kind === 'row').map(({ key }) => key)
  }

  /** Returns the keys of an index in the store. */
  stored(prefix: number): readonly string[] {
    const { gte, lt } = new IndexKeys(prefix).all()
    return this.storage.disk.entries(indexStoreName).map(([key]) => key).filter(key => key >= gte && key < lt)
  }
}

describe('the indexes of a replica', () => {
  it('are there after a restart, and continue at their position', async () => {
    const world = await new World().start()
    await world.write('a', 'b')
    const { version } = await world.build()
    await world.stop()
    await world.start()
    expect(await world.keys()).to.deep.equal(['a', 'b'])
    expect((await world.build()).version).to.equal(version)
    await world.write('c')
    await world.build()
    expect(world.mapped).to.deep.equal(['a', 'b', 'c'])
    await world.stop()
  })

  it('leave no listeners on a signal that calls share', async () => {
    const world = await new World().start()
    await world.write('a')
    const { signal } = new AbortController()
    const shared = { ...context, signal }
    await world.indexes.buildIndex({ definition, through: 'newest', waitMs: 5000 }, shared)
    expect(await collect(world.indexes.scanIndex(everything, shared))).to.have.length(2)
    expect(getEventListeners(signal, 'abort')).to.deep.equal([])
    await world.stop()
  })

  it('leave no snapshot of the store open when they are not far enough for a read', async () => {
    const world = await new World().start()
    await world.write('a')
    await world.build()
    await world.write('b')
    const { store } = world.store
    const takeSnapshot = store.snapshot.bind(store)
    let [taken, open] = [0, 0]
    store.snapshot = () => {
      const snapshot = takeSnapshot()
      const close = snapshot.close.bind(snapshot)
      taken++
      open++
      snapshot.close = () => {
        open--
        return close()
      }
      return snapshot
    }
    const refused = await collect(world.indexes.scanIndex({ ...everything, through: 'newest' }, context))
      .catch((error: unknown) => error)
    expect(refused).to.include({ code: 'not_hosted' })
    expect([taken, open]).to.deep.equal([1, 0])
    await world.stop()
  })

  it('are built anew for another version of the indexer', async () => {
    const world = await new World().start()
    await world.write('a')
    await world.build()
    await world.stop()
    world.indexer = { ...world.indexer, versionOf: () => '2' }
    await world.start()
    let refused: unknown
    await world.keys().catch((error: unknown) => { refused = error })
    expect(refused).to.include({ code: 'not_hosted' })
    await world.build()
    expect(world.mapped).to.deep.equal(['a', 'a'])
    await world.store.cleared()
    expect(world.stored(1)).to.deep.equal([])
    await world.stop()
  })

  it('free their records when they are dropped', async () => {
    const world = await new World().start()
    await world.write('a', 'b')
    await world.build()
    await world.build(other)
    expect([world.stored(1).length, world.stored(2).length]).to.deep.equal([6, 6])
    await world.indexes.dropIndexes({ except: [indexId(other)] }, context)
    await world.store.cleared()
    expect([world.stored(1).length, world.stored(2).length]).to.deep.equal([0, 6])
    await world.stop()
    await world.start()
    expect([...world.store.indexesOf('shard').keys()]).to.deep.equal([indexId(other)])
    await world.stop()
  })

  it('begin anew when a record is damaged', async () => {
    const world = new World()
    // Rows in memory would hide the damage.
    world.options = { cacheBytes: 0 }
    await world.start()
    for (const kind of ['r', 'm', 'p']) {
      await world.write(`before damage of ${kind}`)
      await world.build()
      const [, { keys: { prefix } }] = [...world.store.indexesOf('shard')][0]!
      const damaged = world.stored(prefix).find(key => key[4] === kind)!
      world.storage.disk.damage(indexStoreName, damaged, Buffer.from('damaged'))
      let refused: unknown
      const read = kind === 'p'
        ? collect(world.indexes.reduceIndex({ ...everything, groupLevel: 0 }, context))
        : world.keys()
      await read.catch((error: unknown) => { refused = error })
      expect(refused).to.include({ code: 'storage' })
      await world.build()
      expect(await world.keys()).to.include(`before damage of ${kind}`)
    }
    await world.stop()
  })

  it('are all built again when the directory of the store is damaged', async () => {
    const world = await new World().start()
    await world.write('a')
    await world.build()
    const entry = world.stored(0).find(key => key[4] === 'd')!
    await world.stop()
    world.storage.disk.damage(indexStoreName, entry, Buffer.from('damaged'))
    await world.start()
    expect(world.stored(1)).to.deep.equal([])
    await world.build()
    expect(await world.keys()).to.deep.equal(['a'])
    await world.stop()
  })

  it('refuse a build when too many wait, and build what waits in order', async () => {
    const world = new World()
    const held = Promise.withResolvers<void>()
    const replica = {
      waitForChange: world.replica.waitForChange.bind(world.replica),
      scanChanges: async function* (...parameters: Parameters<ChangeReplica['scanChanges']>) {
        await held.promise
        yield* world.replica.scanChanges(...parameters)
      },
    } as unknown as ChangeReplica
    await world.start(new BuildQueue(new RealClock(), undefined, { ...oneAtATime, waitingMax: 1 }), replica)
    await world.write('a')
    const builds = [world.build(), world.build(other)]
    await setImmediate()
    let refused: unknown
    await world.build({ ...definition, map: 'z' }).catch((error: unknown) => { refused = error })
    expect(refused).to.include({ code: 'overloaded' })
    held.resolve()
    expect((await Promise.all(builds)).map(({ rowCount }) => rowCount)).to.deep.equal([1, 1])
    expect((await world.build({ ...definition, map: 'z' })).rowCount).to.equal(1)
    await world.stop()
  })

  it('do not wait for a long build that began before', async () => {
    const world = new World()
    const clock = new ManualClock()
    const mapped: string[] = []
    world.indexer = {
      ...world.indexer,
      map: async ({ map }, documents) => {
        mapped.push(map as string)
        if (map === 'x') await clock.advance(buildSliceMs)
        return documents.map(({ id }) => ({ rows: [{ key: id, value: new Uint8Array(1) }] }))
      },
    }
    const replica = {
      waitForChange: world.replica.waitForChange.bind(world.replica),
      scanChanges: async function* (...parameters: Parameters<ChangeReplica['scanChanges']>) {
        for await (const page of world.replica.scanChanges(...parameters)) for (const row of page) yield [row]
      },
    } as unknown as ChangeReplica
    await world.start(new BuildQueue(clock, undefined, oneAtATime), replica)
    await world.write('a', 'b', 'c', 'd')
    const builds = await Promise.all([world.build(), world.build(other)])
    expect(mapped.join('')).to.equal('xyyyyxxx')
    expect(builds.map(({ rowCount }) => rowCount)).to.deep.equal([4, 4])
    await world.stop()
  })

  it('of which a few changes are missing do not wait for others, however long these changes take', async () => {
    const world = new World()
    const clock = new ManualClock()
    const held = Promise.withResolvers<void>()
    let ms = 0
    world.indexer = {
      ...world.indexer,
      map: async ({ map }, documents) => {
        await (map === 'y' ? held.promise : clock.advance(ms))
        return documents.map(({ id }) => ({ rows: [{ key: id, value: new Uint8Array(1) }] }))
      },
    }
    await world.start(new BuildQueue(clock, undefined, { runningMax: 1, shortChangesMax: 1 }))
    await world.write('a', 'b')
    await world.build()
    const long = world.build(other)
    await world.write('c')
    ms = shortBuildMs
    expect((await world.build()).position.sequence).to.equal(3)
    held.resolve()
    expect((await long).position.sequence).to.be.at.least(2)
    await world.stop()
  })

  it('give way also when queries extend a build again and again', async () => {
    const world = new World()
    const clock = new ManualClock()
    let extensions = 0
    let extensionsBefore: number | undefined
    world.indexer = {
      ...world.indexer,
      map: async ({ map }, documents) => {
        if (map === 'y') extensionsBefore ??= extensions
        else if (extensions < 20) {
          await clock.advance(buildSliceMs)
          await world.write(`extension ${++extensions}`)
          await world.build(definition, 0)
          if (extensions === 3) void world.build(other, 0)
        }
        return documents.map(({ id }) => ({ rows: [{ key: id, value: new Uint8Array(1) }] }))
      },
    }
    await world.start(new BuildQueue(clock, undefined, oneAtATime))
    await world.write('a')
    while ((await world.build()).position.sequence < 21) await setImmediate()
    await world.build(other)
    expect(extensionsBefore).to.equal(3)
    await world.stop()
  })

  it('let other shards of a view begin before they read changes that came during their build', async () => {
    const queue = new BuildQueue(new ManualClock(), undefined, oneAtATime)
    const [first, second] = [new World(), new World()]
    const rowOf = ({ id }: { readonly id: string }): { rows: { key: string; value: Uint8Array }[] } =>
      ({ rows: [{ key: id, value: new Uint8Array(1) }] })
    let extensions = 0
    let extensionsBefore: number | undefined
    first.indexer = {
      ...first.indexer,
      map: async (_definition, documents) => {
        if (extensions < 20) {
          await first.write(`extension ${++extensions}`)
          await first.build(definition, 0)
        }
        return documents.map(rowOf)
      },
    }
    second.indexer = {
      ...second.indexer,
      map: async (_definition, documents) => {
        extensionsBefore ??= extensions
        return documents.map(rowOf)
      },
    }
    for (const world of [first, second]) {
      await world.start(queue)
      await world.write('a')
    }
    const builds = await Promise.all([first.build(), second.build()])
    expect(extensionsBefore).to.equal(1)
    expect(builds.map(({ position }) => position.sequence)).to.deep.equal([1, 1])
    for (const world of [first, second]) await world.stop()
  })

  it('end their builds when they are closed, also those that wait', async () => {
    const world = await new World().start(new BuildQueue(new RealClock(), undefined, { ...oneAtATime, waitingMax: 1 }))
    await world.write('a')
    const builds = [world.build(), world.build(other)].map(build => build.catch((error: unknown) => error))
    await setImmediate()
    await world.indexes.close()
    for (const outcome of await Promise.all(builds)) {
      if (outcome instanceof Error) expect(outcome).to.include({ code: 'closed' })
    }
    await world.store.close()
    expect(world.storage.disk.openStores).to.deep.equal([])
  })

  it('are not built before they are in the store, also for an empty replica', async () => {
    const world = await new World().start()
    world.storage.disk.failNextWrite('io')
    expect(await world.build().catch((error: unknown) => error)).to.include({ code: 'storage' })
    expect((await world.build()).rowCount).to.equal(0)
    expect(await world.keys()).to.deep.equal([])
    await world.stop()
  })

  it('forget cached rows when a failed write has changed them on the disk nevertheless', async () => {
    const world = await new World().start()
    await world.write(...Array.from({ length: 200 }, (_, at) => `document ${String(at).padStart(3, '0')}`))
    await world.build()
    const lower: RowBound = { key: 'document 005', inclusive: true }
    const count = async (): Promise<string> => {
      const request = { ...everything, ranges: [{ lower }], groupLevel: 0 } as const
      return String((await collect(world.indexes.reduceIndex(request, context))).map(group =>
        'value' in group ? group.value : ''))
    }
    expect(await count()).to.equal(',195')
    let failures = 0
    world.storage.disk.setFaults({ failWrite: () => failures++ === 0 ? 'io' : undefined, landFailed: () => true })
    await world.write('document 010 and a half')
    expect(await world.build().catch((error: unknown) => error)).to.include({ code: 'storage' })
    const before = world.stored(1).length
    expect((await world.build()).rowCount).to.equal(201)
    expect(world.stored(1).length, 'the index does not begin anew').to.be.within(before, before + 10)
    await world.write('document 190 and a half')
    expect((await world.build()).rowCount).to.equal(202)
    expect(await count()).to.equal(',197')
    await world.stop()
  })

  it('have no rows of a failed write that is on the disk, when its documents have changed since', async () => {
    const world = await new World().start()
    const keys = new Map([['a', 'first of a'], ['b', 'first of b']])
    world.indexer = { ...world.indexer, map: async (_definition, documents) => documents.map(({ id }) =>
      ({ rows: keys.has(id) ? [{ key: keys.get(id)!, value: Buffer.from('') }] : [] })) }
    await world.stop()
    await world.start()
    await world.write('a', 'b')
    await world.build()
    let failures = 0
    world.storage.disk.setFaults({ failWrite: () => failures++ === 0 ? 'io' : undefined, landFailed: () => true })
    keys.set('c', 'first of c')
    await world.write('c')
    expect(await world.build().catch((error: unknown) => error)).to.include({ code: 'storage' })
    keys.set('c', 'second of c')
    const opened = await world.replica.openDocument({ id: 'c', body: false, tree: false }, context)
    await world.replica.updateDocuments(
      { edits: [edit('c', opened!.leaves[0]!.revision, { again: true })], revsLimit: 10 }, context,
    )
    expect((await world.build()).rowCount).to.equal(3)
    expect(await world.keys()).to.deep.equal(['first of a', 'first of b', 'second of c'])
    await world.stop()
  })

  it('have the rows of a document that was purged and written again while its changes were read', async () => {
    const world = await new World().start()
    await world.write('a', 'b')
    await world.build()
    for (const value of [1, 2]) {
      const opened = await world.replica.openDocument({ id: 'a', body: false, tree: false }, context)
      await world.replica.updateDocuments(
        { edits: [edit('a', opened!.leaves[0]!.revision, { value })], revsLimit: 10 }, context,
      )
    }
    const scan = world.replica.scanChanges.bind(world.replica)
    world.replica.scanChanges = async function* (request, call) {
      for await (const page of scan(request, call)) {
        yield [{ sequence: page[0]!.sequence - 1, id: 'a', leaves: [], purged: true as const }, ...page]
      }
    }
    expect((await world.build()).rowCount).to.equal(2)
    expect(await world.keys()).to.deep.equal(['a', 'b'])
    await world.stop()
  })

  it('remove the summaries before many changes, and make them anew', async () => {
    const world = await new World().start()
    const ids = (from: number, to: number): string[] =>
      Array.from({ length: to - from }, (_, at) => `document ${String(from + at).padStart(6, '0')}`)
    await world.write(...ids(0, 10_000))
    await world.build()
    const pages = (): number => world.stored(1).filter(key => key[4] === 'p').length
    const before = pages()
    await world.write(...ids(10_000, 15_000))
    const { rowCount } = await world.build()
    expect(rowCount).to.equal(15_000)
    expect(pages()).to.be.within(before + 1, before * 1.6)
    const bound = (key: string, inclusive: boolean): RowBound => ({ key, inclusive })
    const range = { lower: bound('document 000123', true), upper: bound('document 014321', false) }
    const groups = await collect(
      world.indexes.reduceIndex({ ...everything, ranges: [range], groupLevel: 0 }, context))
    expect(groups.slice(1).map(group => 'value' in group && String(group.value))).to.deep.equal(['14198'])
    await world.stop()
  }).timeout(20_000)

  it('remove the summaries of few rows before many changes', async () => {
    const ids = Array.from({ length: 10_000 }, (_, at) => `document ${String(at).padStart(6, '0')}`)
    const pagesAfter = async (...parts: readonly (readonly string[])[]): Promise<number> => {
      const world = await new World().start()
      for (const part of parts) {
        await world.write(...part)
        await world.build()
      }
      const pages = world.stored(1).filter(key => key[4] === 'p').length
      await world.stop()
      return pages
    }
    // Pages that are made anew are fuller than those that were divided again and again.
    expect(await pagesAfter(ids.slice(0, 1000), ids.slice(1000))).to.equal(await pagesAfter(ids))
  }).timeout(20_000)
})
