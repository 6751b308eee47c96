import { expect } from 'chai'
import { setImmediate as turnOfEventLoop } from 'node:timers/promises'
import { ManualClock, MemoryStorage, StorageError } from '@sectional/runtime'
import { ShardHost, verifyShard } from '../../src/index.ts'
import type { ShardEngine } from '../../src/index.ts'
import { context, edit, shardA, shardB, shardRuntime } from '../shard-world.ts'

const text = 'x'.repeat(1000)

describe('compaction', () => {
  let clock: ManualClock
  let host: ShardHost
  let engine: ShardEngine

  beforeEach(async () => {
    clock = new ManualClock()
    host = await ShardHost.open(shardRuntime(new MemoryStorage(), clock), {
      compaction: { replacedBytesMin: 50_000, checkIntervalMs: 1000, pageDocuments: 16, batchDocuments: 4 },
    })
    engine = await host.create(shardA)
  })
  afterEach(() => host.close())

  /** Writes each document the given number of times; returns the first revision of each. */
  async function rewrite(documents: number, times: number, replica = engine): Promise<Map<string, string>> {
    const first = new Map<string, string>()
    for (let index = 0; index < documents; index++) {
      let parent: string | null = null
      for (let time = 0; time < times; time++) {
        const reply = await replica.updateDocuments(
          { edits: [edit(`d${index}`, parent, { time, text })], revsLimit: 1000 }, context,
        )
        const outcome = reply.kind === 'decided' ? reply.outcomes[0] : undefined
        if (outcome?.kind !== 'updated') throw new Error('not written')
        parent = `${outcome.path.start}-${outcome.path.ids[0]}`
        if (time === 0) first.set(`d${index}`, parent)
      }
    }
    return first
  }

  /** Replaces the given revisions by new ones. */
  async function rewriteAll(revisions: ReadonlyMap<string, string>): Promise<void> {
    const edits = [...revisions].map(([id, revision]) => edit(id, revision, { time: 99, text }))
    const reply = await engine.updateDocuments({ edits, revsLimit: 1000 }, context)
    const outcomes = reply.kind === 'decided' ? reply.outcomes : []
    expect(outcomes.map(({ kind }) => kind)).to.deep.equal(edits.map(() => 'updated'))
  }

  /** Replaces the document's revision as many times; returns the last replaced one by the document's id. */
  async function replace(id: string, times: number): Promise<Map<string, string>> {
    let replaced = ''
    for (let time = 0; time < times; time++) {
      replaced = (await engine.openDocument({ id, body: false, tree: false }, context))!.leaves[0]!.revision
      await rewriteAll(new Map([[id, replaced]]))
    }
    return new Map([[id, replaced]])
  }

  async function isCompacting(replica = engine): Promise<boolean> {
    return (await replica.upkeep.replicaInfo(context)).compacting
  }

  async function finish(replica = engine): Promise<void> {
    for (let turn = 0; turn < 1000 && await isCompacting(replica); turn++) await clock.advance(1)
    expect(await isCompacting(replica)).to.equal(false)
  }

  /** Requests a compaction, and resolves when it rests behind its first page. */
  async function compactFirstPage(): Promise<void> {
    await engine.upkeep.compactShard(context)
    for (let turn = 0; turn < 1000 && host.compactions()[0]!.changesDone === 0; turn++) await turnOfEventLoop()
    expect(host.compactions()[0]!.changesDone, 'the compaction rests after the first page').to.equal(16)
  }

  async function readable(revisions: ReadonlyMap<string, string>, replica = engine): Promise<number> {
    const opened = await replica.openRevisions(
      [...revisions].map(([id, revision]) => ({ id, revisions: [revision], latest: false })), context,
    )
    return opened.flat().filter(({ kind }) => kind === 'found').length
  }

  it('drops the bodies of replaced revisions, which are readable until then, and nothing else', async () => {
    const first = await rewrite(40, 3)
    const before = await engine.upkeep.replicaInfo(context)
    expect(await readable(first)).to.equal(40)
    await engine.upkeep.compactShard(context)
    expect(await isCompacting()).to.equal(true)
    await finish()
    expect(await readable(first)).to.equal(0)
    const after = await engine.upkeep.replicaInfo(context)
    expect([after.sequence, after.documentCount, after.sizes.external]).to.deep.equal([
      before.sequence, before.documentCount, before.sizes.external,
    ])
    expect((await verifyShard(engine.records)).problems).to.deep.equal([])
    const snapshot = await engine.openDocument({ id: 'd7', body: true, tree: true }, context)
    expect(snapshot!.tree![0]!.available).to.deep.equal([true, false, false])
    expect(JSON.parse(Buffer.from(snapshot!.body!).toString())).to.deep.equal({ time: 2, text })
  })

  it('reports its progress', async () => {
    await rewrite(40, 2)
    await engine.upkeep.compactShard(context)
    const seen: number[] = []
    while (await isCompacting()) {
      for (const { shard, changesDone, totalChanges } of host.compactions()) {
        expect([shard, totalChanges]).to.deep.equal([shardA, 40])
        seen.push(changesDone)
      }
      await clock.advance(1)
    }
    expect(seen.length).to.be.greaterThan(0)
    expect(seen).to.deep.equal(seen.toSorted((a, b) => a - b))
    expect(host.compactions()).to.deep.equal([])
  })

  it('runs concurrently with writes', async () => {
    await rewrite(40, 2)
    await engine.upkeep.compactShard(context)
    await engine.updateDocuments({ edits: [edit('new', null, { text })], revsLimit: 1000 }, context)
    await finish()
    expect((await verifyShard(engine.records)).problems).to.deep.equal([])
  })

  it('drops what was replaced behind a running compaction, when it is requested again meanwhile', async () => {
    const first = await rewrite(40, 1)
    await rewriteAll(new Map([...first].filter(([id]) => id !== 'd0')))
    await compactFirstPage()
    await rewriteAll(new Map([...first].filter(([id]) => id === 'd0')))
    await engine.upkeep.compactShard(context)
    await finish()
    expect(await readable(first)).to.equal(0)
  })

  it('counts what was replaced behind it towards the next one, which begins automatically', async () => {
    await rewrite(20, 1)
    await replace('d0', 10)
    await compactFirstPage()
    const replaced = await replace('d0', 30)
    await finish()
    await clock.advance(2000)
    expect(await readable(replaced), 'too little for another compaction').to.equal(1)
    await replace('d0', 30)
    await clock.advance(1000)
    await finish()
    expect(await readable(replaced)).to.equal(0)
  })

  it('begins automatically for each of several shards that have many replaced bodies at the same time', async () => {
    const replicas = [engine, await host.create(shardB), await host.create({ ...shardA, incarnation: 'bbbb' })]
    const first: Map<string, string>[] = []
    for (const replica of replicas) first.push(await rewrite(10, 9, replica))
    await clock.advance(1000)
    for (const [at, replica] of replicas.entries()) {
      await finish(replica)
      expect(await readable(first[at]!, replica)).to.equal(0)
    }
  })

  it('begins automatically for a shard with many replaced bodies when the interval has passed', async () => {
    const first = await rewrite(10, 3)
    expect(await readable(first)).to.equal(10)
    await clock.advance(2000)
    expect(await readable(first), 'too little to be worth it').to.equal(10)
    for (const round of ['first', 'second']) {
      const replaced = new Map<string, string>()
      for (let index = 0; index < 10; index++) {
        for (let time = 0; time < 8; time++) {
          const id = `d${index}`
          const leaf = (await engine.openDocument({ id, body: false, tree: false }, context))!.leaves[0]!.revision
          replaced.set(id, leaf)
          await engine.updateDocuments({ edits: [edit(id, leaf, { round, time, text })], revsLimit: 1000 }, context)
        }
      }
      expect(await isCompacting()).to.equal(false)
      expect(await readable(replaced)).to.equal(10)
      await clock.advance(1000)
      await finish()
      expect(await readable(first)).to.equal(0)
      expect(await readable(replaced), round).to.equal(0)
    }
  })

  it('runs for the shards that wait when those before it fail', async () => {
    const others = [await host.create(shardB), await host.create({ ...shardA, incarnation: 'bbbb' })]
    const first = await rewrite(4, 2)
    const { records } = engine
    const write = records.store.write.bind(records.store)
    let failing = 2
    records.store.write = async (...parts) => {
      if (failing-- > 0) throw new StorageError('io', 'the disk fails')
      return write(...parts)
    }
    for (const replica of [others[0]!, others[1]!, engine]) await replica.upkeep.compactShard(context)
    await finish()
    expect(failing).to.be.lessThan(0)
    expect(await readable(first)).to.equal(0)
  })

  it('ends when the host is closed or the shard is dropped', async () => {
    await rewrite(40, 2)
    await engine.upkeep.compactShard(context)
    await host.drop(shardA)
    await host.reclaimed()
    for (let turn = 0; turn < 100 && host.compactions().length > 0; turn++) await clock.advance(1)
    expect(host.compactions()).to.deep.equal([])
  })

  it('ends when the host is closed while the store reclaims the space', async () => {
    await rewrite(4, 2)
    const { store } = engine.records
    const reclaiming = Promise.withResolvers<void>()
    store.compact = (_, signal) => new Promise((_, reject) => {
      reclaiming.resolve()
      signal?.addEventListener('abort', () => reject(new StorageError('closed', 'the work was ended')))
    })
    await engine.upkeep.compactShard(context)
    for (let turn = 0; turn < 100 && host.compactions()[0]?.phase !== 'disk'; turn++) await clock.advance(1)
    await reclaiming.promise
    await host.close()
    expect(host.compactions()).to.deep.equal([])
  })
})
