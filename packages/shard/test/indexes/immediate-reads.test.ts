import { expect } from 'chai'
import { indexId, scanTogether } from '@sectional/core'
import type {
  ImmediateAnswer, IndexDefinition, IndexRow, ReplicaCheckpoint, ScanIndexRequest,
} from '@sectional/core'
import { MemoryShardReplica } from '@sectional/core/shard-replica-memory'
import { MemoryStorage, RealClock, SeededRandom, Turns } from '@sectional/runtime'
import { BuildQueue } from '../../src/indexes/build-queue.ts'
import type { IndexOptions } from '../../src/indexes/index-options.ts'
import { IndexKeys } from '../../src/indexes/index-keys.ts'
import { IndexStore } from '../../src/indexes/index-store.ts'
import type { Indexer } from '../../src/indexes/indexer.ts'
import { ShardIndexes } from '../../src/indexes/shard-indexes.ts'
import { collect, context, edit, silentLog } from '../shard-world.ts'

const definition: IndexDefinition = { kind: 'test', map: 'x', reduce: 'count', options: {} }
const scan = { index: indexId(definition), through: 'newest', ranges: [{}], descending: false } as const
const reduction = { ...scan, groupLevel: 0 } as const

/** Is called before each call of `reduce`. */
let beforeReduce = (): void => {}

const indexer: Indexer = {
  versionOf: () => '1',
  map: async (_definition, documents) =>
    documents.map(({ id }) => ({ rows: [{ key: id, value: Buffer.from(`value of ${id}`) }] })),
  groupOf: (key, level) => key.slice(0, level),
  reduce: async (_definition, lists) => {
    beforeReduce()
    return lists.map(rows => Buffer.from(String(rows.length)))
  },
  rereduce: async (_definition, lists) => lists.map(values =>
    Buffer.from(String(values.reduce((sum, value) => sum + Number(Buffer.from(value)), 0)))),
  encodeGroup: (_definition, _row, _level, value) => value,
}

class World {
  replica = new MemoryShardReplica({ history: 'one' })
  newest: ReplicaCheckpoint | undefined = { history: 'one', sequence: 0 }
  store!: IndexStore
  indexes!: ShardIndexes

  async start(options: Partial<IndexOptions> = {}): Promise<this> {
    const clock = new RealClock()
    this.store = await IndexStore.open({
      storage: new MemoryStorage(), log: silentLog, random: new SeededRandom(1), clock, options,
    })
    this.indexes = new ShardIndexes({
      owner: 'shard', database: 'db', store: this.store, replica: this.replica, newest: () => this.newest, indexer,
      queue: new BuildQueue(clock), clock, turns: new Turns(clock),
    })
    return this
  }

  async stop(): Promise<void> {
    await this.indexes.close()
    await this.store.close()
  }

  async write(...ids: readonly string[]): Promise<void> {
    await this.replica.updateDocuments({ edits: ids.map(id => edit(id, null, {})), revsLimit: 10 }, context)
    this.newest = { history: 'one', sequence: this.newest!.sequence + ids.length }
  }

  /** Creates the documents that do not exist, or deletes those that exist. Returns the ids that exist then. */
  async change(ids: readonly string[], deleted: boolean, existing: ReadonlySet<string>): Promise<ReadonlySet<string>> {
    const edits = await Promise.all(ids.filter(id => existing.has(id) === deleted).map(async id => {
      const found = await this.replica.openDocument({ id, body: false, tree: false }, context)
      return edit(id, deleted ? found!.leaves[0]!.revision : null, {}, deleted)
    }))
    await this.replica.updateDocuments({ edits, revsLimit: 10 }, context)
    this.newest = await this.replica.waitForChange({ history: '', sequence: 0 }, context)
    const changed = new Set(existing)
    for (const id of ids) deleted ? changed.delete(id) : changed.add(id)
    return changed
  }

  async build(): Promise<void> {
    await this.indexes.buildIndex({ definition, through: 'newest', waitMs: 5000 }, context)
  }

  /** Reads with the verbs, which brings the answers into memory. */
  async read(): Promise<void> {
    await collect(this.indexes.scanIndex(scan, context))
    await collect(this.indexes.reduceIndex(reduction, context))
  }

  scanInMemory(request: Partial<ScanIndexRequest> = {}): ImmediateAnswer<IndexRow> | undefined {
    return scanTogether([this.indexes.immediate], { ...scan, ...request })[0]
  }

  /** Returns the keys of all rows and their number, as far as they are answered from memory. */
  fromMemory(): { readonly keys: readonly string[] | undefined; readonly count: number | undefined } {
    const scanned = this.scanInMemory()
    const count = this.indexes.immediate.reduceIndex(reduction)?.rows.at(0)?.value
    return {
      keys: scanned && Array.from(scanned.rows, ({ key }) => key),
      count: count && Number(Buffer.from(count)),
    }
  }
}

const nothing = { keys: undefined, count: undefined }

describe('reads of an index from memory', () => {
  it('answer what a first build or a read has brought into memory, and not before', async () => {
    const world = await new World().start()
    expect(world.fromMemory()).to.deep.equal(nothing)
    await world.write('a', 'b')
    await world.build()
    expect(world.fromMemory()).to.deep.equal({ keys: ['a', 'b'], count: undefined })
    await world.read()
    expect(world.fromMemory()).to.deep.equal({ keys: ['a', 'b'], count: 2 })
    await world.stop()
  })

  it('find no rows of a first build that failed', async () => {
    const world = await new World().start()
    const ids = Array.from({ length: 1600 }, (_, at) => `k${String(at).padStart(4, '0')}`)
    await world.write(...ids)
    let reductions = 0
    beforeReduce = () => { if (++reductions === 2) throw new Error('the reduction fails') }
    try {
      expect(await world.build().catch((error: unknown) => error)).to.be.an('error')
    } finally {
      beforeReduce = () => {}
    }
    // Now the runs of 48 rows begin elsewhere, and then a run is divided where the failed build had begun one.
    await world.write('k0000a')
    await world.build()
    const later = Array.from({ length: 46 }, (_, at) => `k0047-${10 + at}`)
    await world.write(...later)
    await world.build()
    const all = [...ids, 'k0000a', ...later].toSorted()
    const range = { lower: { key: 'k0040', inclusive: true }, upper: { key: 'k0120', inclusive: true } }
    const expected = all.filter(id => id >= 'k0040' && id <= 'k0120')
    for (const isRead of [false, true]) {
      const found = world.scanInMemory({ ranges: [range] })
      if (isRead || found !== undefined) expect(Array.from(found!.rows, ({ key }) => key)).to.deep.equal(expected)
      await collect(world.indexes.scanIndex({ ...scan, ranges: [range] }, context))
    }
    await world.stop()
  })

  it('find no rows where no memory is allowed for them', async () => {
    const world = await new World().start({ cacheBytes: 0 })
    await world.write('a', 'b')
    await world.build()
    await world.read()
    expect(world.fromMemory()).to.deep.equal({ keys: undefined, count: 2 })
    await world.stop()
  })

  it('give no answer from before a change', async () => {
    const world = await new World().start()
    await world.write('a')
    await world.build()
    await world.read()
    await world.write('b')
    expect(world.fromMemory()).to.deep.equal(nothing)
    await world.build()
    // The build keeps the rows of the run that it has changed, and results of reductions are of one state.
    expect(world.fromMemory()).to.deep.equal({ keys: ['a', 'b'], count: undefined })
    await world.read()
    expect(world.fromMemory()).to.deep.equal({ keys: ['a', 'b'], count: 2 })
    await world.stop()
  })

  for (const cacheBytes of [1024 * 1024, 20_000]) {
    it(`have the rows after any changes, with ${cacheBytes} bytes for rows in memory`, async () => {
      const world = await new World().start({ cacheBytes })
      const random = new SeededRandom(cacheBytes)
      const ids = Array.from({ length: 600 }, (_, at) => `k${String(at).padStart(4, '0')}`)
      let existing: ReadonlySet<string> = new Set<string>()
      let fromMemory = 0
      for (let round = 0; round < 40; round++) {
        // Runs are divided where many documents are created, and become empty where many are deleted.
        const [from, to] = [random.fraction(), random.fraction()].toSorted((a, b) => a - b)
        const changed = ids.slice(from! * ids.length, to! * ids.length)
        existing = await world.change(changed, round % 3 === 2, existing)
        await world.build()
        for (const start of [0, 150, 300, 450]) {
          const within = ids.slice(start, start + 150)
          const [lower, upper] = [within[0]!, within.at(-1)!].map(key => ({ key, inclusive: true }))
          const range = { lower: lower!, upper: upper! }
          const expected = within.filter(id => existing.has(id))
          const found = world.scanInMemory({ ranges: [range] })
          if (found !== undefined) {
            fromMemory++
            expect(Array.from(found.rows, ({ key }) => key)).to.deep.equal(expected)
          }
          const rows = (await collect(world.indexes.scanIndex({ ...scan, ranges: [range] }, context))).slice(1)
          expect(rows.map(row => row.kind === 'row' && row.key)).to.deep.equal(expected)
        }
      }
      expect(fromMemory).to.be.above(0)
      await world.stop()
    })
  }

  for (const [when, isReachedLater] of [['in which it begins', false], ['that it reaches later', true]] as const) {
    it(`have no answer when a page ${when} is damaged, and the next build begins anew`, async () => {
      const ids = Array.from({ length: 4000 }, (_, at) => `k${String(at).padStart(4, '0')}`)
      const world = await new World().start()
      await world.write(...ids)
      await world.build()
      const pages = (await world.store.store.iterate(new IndexKeys(1).pages()).next(100))
        .map(([key]) => ({ key, ...IndexKeys.readPage(key) }))
      const second = pages.filter(({ level }) => level === 1)[1]!
      await world.store.store.write(batch => { batch.put(second.key, Buffer.from('damaged')) })
      const at = ids.indexOf(second.place.slice(0, ids[0]!.length))
      const within = isReachedLater ? ids.slice(at - 1, at + 1) : ids.slice(at + 1, at + 2)
      const [lower, upper] = [within[0]!, within.at(-1)!].map(key => ({ key, inclusive: true }))
      const ranges = [{ lower: lower!, upper: upper! }]
      const before = [{ upper: { key: ids[at - 1]!, inclusive: true } }]
      expect(world.scanInMemory({ ranges: before, limit: 1 })?.rows.length).to.equal(1)
      expect(world.scanInMemory({ ranges })).to.equal(undefined)
      await world.build()
      expect(Array.from(world.scanInMemory({ ranges })!.rows, ({ key }) => key)).to.deep.equal(within)
      await world.stop()
    })
  }

  it('give no answer from before a purge', async () => {
    const world = await new World().start()
    await world.write('a', 'b')
    await world.build()
    await world.read()
    const { leaves } = (await world.replica.openDocument({ id: 'a', body: false, tree: false }, context))!
    const path = { start: 1, ids: [leaves[0]!.revision.slice(2)] }
    await world.replica.purgeDocuments({ purges: [{ uuid: 'x', id: 'a', paths: [path] }] }, context)
    world.newest = await world.replica.waitForChange({ history: '', sequence: 0 }, context)
    expect(world.fromMemory()).to.deep.equal(nothing)
    await world.build()
    await world.read()
    expect(world.fromMemory()).to.deep.equal({ keys: ['b'], count: 1 })
    await world.stop()
  })

  it('give no answer for another history, when the replica cannot be read, or when the index is gone', async () => {
    const world = await new World().start()
    await world.write('a')
    await world.build()
    await world.read()
    const { newest } = world
    for (const other of [{ history: 'two', sequence: 1 }, undefined]) {
      world.newest = other
      expect(world.fromMemory()).to.deep.equal(nothing)
    }
    world.newest = newest
    expect(world.fromMemory().count).to.equal(1)
    await world.indexes.dropIndexes({ except: [] }, context)
    expect(world.fromMemory()).to.deep.equal(nothing)
    await world.build()
    await world.read()
    expect(world.fromMemory().count).to.equal(1)
    await world.indexes.close()
    expect(world.fromMemory()).to.deep.equal(nothing)
    await world.stop()
  })

  it('give complete states only while a build writes', async () => {
    const world = await new World().start()
    await world.write('a')
    await world.build()
    await world.read()
    const later = Array.from({ length: 200 }, (_, at) => `b${at}`)
    await world.write(...later)
    const building = world.build()
    let ended = false
    void building.then(() => { ended = true })
    const states = new Set<string>()
    while (!ended) {
      const answer = world.scanInMemory({ through: 0, limit: 1000 })
      states.add(answer === undefined ? 'none' : `${answer.head.rowCount} ${answer.rows.length}`)
      await new Promise(resolve => { setImmediate(resolve) })
    }
    expect(states).to.include('1 1')
    for (const state of states) if (state !== 'none') expect(new Set(state.split(' ')).size).to.equal(1)
    await world.stop()
  })
})
