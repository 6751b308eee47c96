import { expect } from 'chai'
import { indexId, ReplicaError, SortKeyEncoder } from '@sectional/core'
import type { FindRequest, IndexReplica } from '@sectional/core'
import { MemoryStorage, PrometheusMetrics, RealClock, Turns } from '@sectional/runtime'
import { QueryIndexer, ShardHost } from '../../../src/index.ts'
import type { KeyKind, ShardEngine } from '../../../src/index.ts'
import { IndexKeys } from '../../../src/indexes/index-keys.ts'
import { indexStoreName } from '../../../src/indexes/index-store.ts'
import { collect, context, edit, shardA, shardRuntime } from '../../shard-world.ts'
import { indexOn } from './query-world.ts'

const definition = indexOn(['n'])
const throughIndex = { kind: 'index', index: indexId(definition), through: 'newest', ranges: [{}] } as const
const allDocuments: FindRequest['source'] = { kind: 'documents' }

/** A host with one replica and the indexer of Mango. */
class World {
  readonly storage = new MemoryStorage()
  readonly metrics = new PrometheusMetrics()
  readonly reported: string[] = []
  host!: ShardHost
  replica!: ShardEngine

  async start(): Promise<void> {
    const clock = new RealClock()
    const turns = new Turns(clock)
    const runtime = { ...shardRuntime(this.storage, clock), metrics: this.metrics, turns }
    this.host = await ShardHost.open(runtime, {
      indexerOf: () => new QueryIndexer({ turns, clock, machine: runtime.machine }),
      // Rows in memory would hide damage.
      indexes: { cacheBytes: 0 },
    })
    this.host.onDamage({
      damagedReplica: ({ incarnation }) => { this.reported.push(incarnation) }, damagedBlob: () => {},
    })
    this.replica = await this.host.create(shardA)
    const edits = [1, 2, 3].map(n => edit(`d${n}`, null, { n }))
    await this.replica.updateDocuments({ edits, revsLimit: 10 }, context)
  }

  async build(): Promise<IndexReplica> {
    const indexes = await this.host.indexes(shardA, true)
    await indexes.buildIndex({ definition, through: 'newest', waitMs: 5000 }, context)
    return indexes
  }

  /** Returns the ids of the matches, or the code of the error. */
  async find(source: FindRequest['source'], documents: FindRequest['documents'] = 'winner'): Promise<string> {
    const request = { selector: '{"n":{"$gt":1}}', source, descending: false, documents }
    try {
      const rows = await collect((await this.host.indexes(shardA, false)).find(request, context))
      return rows.filter(row => row.kind === 'found').map(({ id }) => id).join(' ')
    } catch (error) {
      return error instanceof ReplicaError ? error.code : String(error)
    }
  }

  /** Flips a bit in the first record of a kind of the documents. */
  async damage(kind: KeyKind): Promise<void> {
    const { store, keys } = this.replica.records
    const [[key, value]] = await store.iterate(keys.kind(kind)).next(1) as [[string, Uint8Array]]
    const damaged = Uint8Array.from(value)
    damaged[damaged.length - 1]! ^= 1
    await store.write(batch => batch.put(key, damaged))
  }

  async damagedIndexes(): Promise<number> {
    const samples = await this.metrics.samples()
    return samples.filter(({ name }) => name === 'sectional_index_damaged_total')
      .reduce((sum, { value }) => sum + value, 0)
  }
}

describe('finding documents on a host', () => {
  let world: World
  beforeEach(async () => {
    world = new World()
    await world.start()
  })
  afterEach(() => world.host.close())

  it('needs no store of indexes without an index', async () => {
    expect(await world.find(allDocuments)).to.equal('d2 d3')
    expect(await world.find(throughIndex)).to.equal('not_hosted')
    expect(await world.storage.exists(indexStoreName)).to.equal(false)
    await world.build()
    expect(await world.find(throughIndex)).to.equal('d2 d3')
    expect(await world.find(allDocuments)).to.equal('d2 d3')
  })

  it('is refused when the replica was dropped', async () => {
    const indexes = await world.build()
    await world.host.drop(shardA)
    const find = (source: FindRequest['source']): Promise<unknown> => collect(indexes.find(
      { selector: '{}', source, descending: false, documents: 'winner' }, context)).catch((error: unknown) => error)
    for (const source of [allDocuments, throughIndex]) {
      expect(await find(source)).to.be.instanceOf(ReplicaError).with.property('code', 'not_hosted')
    }
  })

  it('fails when a document is damaged, which is reported, and leaves the index as it is', async () => {
    await world.build()
    await world.damage('b')
    expect(await world.find(throughIndex)).to.equal('storage')
    expect(world.reported).to.deep.equal(['aaaa'])
    expect(await world.find(allDocuments)).to.equal('storage')
    expect(await world.find(throughIndex, 'none')).to.equal('d2 d3')
    expect(await world.damagedIndexes()).to.equal(0)
  })

  it('fails when a row of the index is damaged, which is then built again', async () => {
    await world.build()
    const { disk } = world.storage
    const [[key, value]] = disk.entries(indexStoreName)
      .filter(([each]) => each.startsWith(new IndexKeys(1).row(''))) as [[string, Uint8Array]]
    disk.damage(indexStoreName, key, value.map((byte, at) => at === value.length - 1 ? byte ^ 1 : byte))
    expect(await world.find(throughIndex)).to.equal('storage')
    expect(await world.damagedIndexes()).to.equal(1)
    expect(world.reported).to.deep.equal([])
    expect(await world.find(throughIndex)).to.equal('not_hosted')
    await world.build()
    expect(await world.find(throughIndex)).to.equal('d2 d3')
  })

  it('reads the first index only when rows of the second one are damaged, which is then built again', async () => {
    const second = indexOn(['n'], { n: { $gt: 0 } })
    const within = { index: indexId(second), key: new SortKeyEncoder('root').encode([2]) }
    const indexes = await world.build()
    await indexes.buildIndex({ definition: second, through: 'newest', waitMs: 5000 }, context)
    expect(await world.find({ ...throughIndex, within })).to.equal('d2')
    const { disk } = world.storage
    for (const [key, value] of disk.entries(indexStoreName)) {
      if (!key.startsWith(new IndexKeys(2).row(''))) continue
      disk.damage(indexStoreName, key, value.map((byte, at) => at === value.length - 1 ? byte ^ 1 : byte))
    }
    expect(await world.find({ ...throughIndex, within })).to.equal('d2 d3')
    expect(await world.damagedIndexes()).to.equal(1)
    expect(await world.find(throughIndex)).to.equal('d2 d3')
    await indexes.buildIndex({ definition: second, through: 'newest', waitMs: 5000 }, context)
    expect(await world.find({ ...throughIndex, within })).to.equal('d2')
  })

  it('fails to build an index of damaged documents, and reports them', async () => {
    await world.damage('b')
    const error = await world.build().catch((failure: unknown) => failure)
    expect(error).to.be.instanceOf(ReplicaError).with.property('code', 'storage')
    expect(world.reported).to.deep.equal(['aaaa'])
    expect(await world.damagedIndexes()).to.equal(0)
  })
})
