import { expect } from 'chai'
import { indexId, scanTogether, shardKey } from '@sectional/core'
import type { ImmediateAnswer, ImmediateIndexReads, IndexHead, IndexRow, ShardId } from '@sectional/core'
import { ReplicaAccess } from '../../src/replicas/replica-access.ts'
import { immediateRows, type ImmediateRead } from '../../src/views/immediate-rows.ts'
import type { ReadIndex } from '../../src/views/shard-read.ts'
import { reduceView } from '../../src/views/view-reduce.ts'
import { scanView } from '../../src/views/view-scan.ts'
import type { ViewScope } from '../../src/views/view-scope.ts'
import type { ReduceQuery, ViewQuery } from '../../src/contracts/view-query.ts'
import { request } from '../replica-world.ts'
import { collect, definition, everything, IndexWorld, sumOf, testRows } from './index-world.ts'

const head: IndexHead = {
  kind: 'head', position: { history: 'one', sequence: 1 }, readSequence: 1, version: '1', rowCount: 0, rowsBefore: 0,
}
const empty: ImmediateIndexReads = {
  beginScan: scanOf({ head, rows: [] }), reduceIndex: () => ({ head, rows: [] }),
}
const read: ImmediateRead<unknown> = {
  request: { index: indexId(definition), through: 'newest', ranges: [{}], descending: false }, update: true, newest: 0,
}
const verb: ReadIndex<unknown, never> = {
  call: () => { throw new Error('not called') },
  immediate: indexes => scanTogether(indexes, { index: '', through: 0, ranges: [], descending: false }) as never,
}

/** Returns a scan whose answer is there when both of its steps were made. */
function scanOf(answer: ImmediateAnswer<IndexRow>): ImmediateIndexReads['beginScan'] {
  return () => {
    const steps: string[] = []
    return {
      locate: () => { steps.push('locate') },
      touch: () => { steps.push('touch') },
      answer: () => steps.join() === 'locate,touch' ? answer : undefined,
    }
  }
}

function withMemory(scope: ViewScope, immediate: (shard: ShardId) => ImmediateIndexReads | undefined): ViewScope {
  return { ...scope, indexes: { ...scope.indexes, indexes: (...to) => scope.indexes.indexes(...to), immediate } }
}

describe('rows from the memory of a node', () => {
  it('are taken where the node would read its own replica, and where that has every acknowledged write', async () => {
    const world = new IndexWorld({ q: 1, nodes: ['a', 'b', 'out'], n: 2 })
    const [shard] = world.db.shards
    const replicas = ['a', 'b'].map(node => ({ node, filling: false }))
    world.setDatabase({ ...world.db, shards: [{ ...shard!, replicas }] })
    const scope = withMemory(world.viewScope('a'), () => empty)
    const [place] = scope.access.places(world.db)
    const rows = (changed: Partial<ImmediateRead<unknown>> = {}, of = scope): unknown =>
      immediateRows(of, [place!], { ...read, ...changed }, verb)[0]
    expect(rows()).to.include({ node: 'a' })
    expect(rows({ update: false })).to.include({ node: 'a' })
    expect(rows({ update: 'lazy' })).to.equal(undefined)
    expect(rows({}, withMemory(world.viewScope('out'), () => empty))).to.equal(undefined)
    expect(rows({}, withMemory(scope, () => undefined))).to.equal(undefined)
    expect(rows({}, world.viewScope('a'))).to.equal(undefined)
    scope.unconfirmed.acknowledged(place!.id, 'a', Promise.resolve(false))
    const { newest } = scope.unconfirmed
    expect(rows({ newest })).to.equal(undefined)
    expect(rows({ newest, update: false })).to.include({ node: 'a' })
  })

  it('are not taken from a replica that catches up or is being filled', () => {
    const world = new IndexWorld({ q: 1, nodes: ['a', 'b'], n: 2 })
    let isCatchingUp = false
    const directory = { ...world.directory('a'), isCatchingUp: () => isCatchingUp }
    const inner = world.viewScope('a')
    const health = { reads: inner.readHealth, decisions: inner.decisionHealth }
    const scope = withMemory({ ...inner, access: new ReplicaAccess('a', directory, health) }, () => empty)
    const [place] = scope.access.places(world.db)
    const rows = (of: typeof place): unknown => immediateRows(scope, [of!], read, verb)[0]
    expect(rows(place)).to.include({ node: 'a' })
    isCatchingUp = true
    expect(rows(place)).to.equal(undefined)
    isCatchingUp = false
    const filling = place!.record.replicas.map(({ node }) => ({ node, filling: node === 'a' }))
    expect(rows({ ...place!, record: { ...place!.record, replicas: filling } })).to.equal(undefined)
  })

  it('are merged with those of other shards, which are read with calls', async () => {
    const world = new IndexWorld({ q: 2, nodes: ['a'], n: 1 })
    const ids = Array.from({ length: 12 }, (_, at) => `d${String(at).padStart(2, '0')}`)
    await world.write(ids.map(id => ({ id, keys: [id], value: 1 })))
    const scope = world.viewScope('a')
    const answerOf = async (of: ViewScope): Promise<readonly string[]> => {
      const answer = await world.during(scanView(of, world.db, everything, request()))
      const rows = await world.during(testRows(answer.rows))
      await answer.close()
      return rows.map(({ id }) => id)
    }
    expect(await answerOf(scope)).to.deep.equal(ids)
    const first = scope.access.places(world.db)[0]!.id
    const stored: IndexRow[] = []
    let firstHead: IndexHead | undefined
    const all = { index: indexId(definition), through: 0, ranges: [{}], descending: false } as const
    for await (const page of world.indexesOn('a', first).scanIndex(all, { timeoutMs: 1000 })) {
      for (const row of page) {
        if (row.kind === 'head') firstHead = row
        else stored.push(row)
      }
    }
    expect(stored.length).to.be.within(1, ids.length - 1)
    const memory = { ...empty, beginScan: scanOf({ head: firstHead!, rows: stored }) }
    world.calls.length = 0
    expect(await answerOf(withMemory(scope, shard => shard === first ? memory : undefined))).to.deep.equal(ids)
    expect(world.calls.filter(({ verb: name }) => name === 'scanIndex').length).to.equal(1)
  })

  it('of all shards are merged, skipped, limited and reduced as those of calls', async () => {
    const world = new IndexWorld({ q: 4, nodes: ['a'], n: 1 })
    const ids = Array.from({ length: 20 }, (_, at) => `d${String(at).padStart(2, '0')}`)
    await world.write(ids.map((id, at) => ({ id, keys: [at % 3], value: 1 })))
    const scope = world.viewScope('a')
    const names = async (of: ViewScope, query: Partial<ViewQuery>): Promise<readonly string[]> => {
      const { rows: found } = await world.during(scanView(of, world.db, { ...everything, ...query }, request()))
      return (await world.during(testRows(found))).map(({ id }) => id)
    }
    const sums = async (of: ViewScope, query: Partial<ReduceQuery>): Promise<readonly number[]> => {
      const reduceAgain: ReduceQuery['reduceAgain'] = async groups =>
        groups.map(values => Buffer.from(JSON.stringify({ value: sumOf(values) })))
      const all: ReduceQuery = { ...everything, groupLevel: 'exact', reduceAgain, ...query }
      const { rows: found } = await world.during(reduceView(of, world.db, all, request()))
      return (await world.during(testRows(found))).map(({ value }) => value)
    }
    const all = await names(scope, {})
    const builtIn = { definition: { ...definition, reduce: '_sum' } }
    for (const query of [{}, builtIn]) expect(await sums(scope, query)).to.deep.equal([7, 7, 6])
    const memories = new Map<string, ImmediateIndexReads>()
    const through = { index: indexId(definition), through: 0, ranges: [{}], descending: false } as const
    for (const { id } of scope.access.places(world.db)) {
      const index = world.indexesOn('a', id)
      const [scanned] = await split(index.scanIndex(through, { timeoutMs: 1000 }))
      const [reduced] = await split(index.reduceIndex({ ...through, groupLevel: 'exact' }, { timeoutMs: 1000 }))
      memories.set(shardKey(id), { beginScan: scanOf(scanned!), reduceIndex: () => reduced! })
    }
    const inMemory = withMemory(scope, shard => memories.get(shardKey(shard)))
    world.calls.length = 0
    expect(await names(inMemory, {})).to.deep.equal(all)
    expect(await names(inMemory, { skip: 3, limit: 5 })).to.deep.equal(all.slice(3, 8))
    expect(await names(inMemory, { skip: 3, limit: 1 })).to.deep.equal(all.slice(3, 4))
    expect(await names(inMemory, { limit: 0 })).to.deep.equal([])
    for (const query of [{}, builtIn, builtIn]) {
      expect(await sums(inMemory, query)).to.deep.equal([7, 7, 6])
      expect(await sums(inMemory, { ...query, skip: 2 })).to.deep.equal([6])
      expect(await sums(inMemory, { ...query, skip: 2, limit: 0 })).to.deep.equal([])
    }
    expect(world.calls).to.deep.equal([])
  })
})

/** Returns the head and the other rows of an answer. */
async function split<Row extends { readonly kind: string }>(
  pages: AsyncIterable<readonly (Row | IndexHead)[]>,
): Promise<[{ readonly head: IndexHead; readonly rows: Exclude<Row, IndexHead>[] }]> {
  const rows = await collect(pages)
  const head = rows.find(row => row.kind === 'head') as IndexHead
  return [{ head, rows: rows.filter(row => row.kind !== 'head') as Exclude<Row, IndexHead>[] }]
}
