import { expect } from 'chai'
import {
  Aggregation, decodeReduced, decodeViewGroup, indexId, parseAggregateQuery, partitionPrefix, ReplicaError,
  rootCollationVersion, SortKeyEncoder,
  type ChangeRow, type FindRequest, type IndexDefinition, type RowRange,
} from '@sectional/core'
import { type Clock, MemorySandbox, RealClock, Turns } from '@sectional/runtime'
import { JavaScriptIndexer } from '../../../src/indexes/javascript/javascript-indexer.ts'
import { viewReduceAgain } from '../../../src/indexes/javascript/reduce-again.ts'
import { QueryIndexer } from '../../../src/indexes/query/query-indexer.ts'
import { collect, context, json } from '../../shard-world.ts'
import { indexOn, QueryWorld } from './query-world.ts'

const encoder = new SortKeyEncoder('root')

describe('an index of the kind query', () => {
  let world: QueryWorld
  beforeEach(async () => { world = await QueryWorld.open() })
  afterEach(() => world.close())

  /** Returns the code of the error with which a call fails. */
  async function failureOf(call: Promise<unknown>): Promise<unknown> {
    const error = await call.catch((failure: unknown) => failure)
    return error instanceof ReplicaError ? error.code : error
  }

  /** Returns the counts of the groups of a range, as a coordinator does. */
  async function counts(definition: IndexDefinition, groupLevel: number | 'exact', range: RowRange): Promise<unknown> {
    const read = { index: indexId(definition), through: 0, ranges: [range], descending: false, groupLevel }
    const groups = (await collect(world.indexes.reduceIndex(read, context))).filter(row => row.kind === 'group')
    const parts = { sandbox: new MemorySandbox(), database: '', turns: new Turns(new RealClock()) }
    const reduced = await viewReduceAgain(parts, definition)(
      groups.map(({ value }) => [value]), new AbortController().signal)
    return reduced.map(group => {
      const { key, state } = decodeViewGroup(group)
      const { json } = decodeReduced(state) as { readonly json: string }
      return `${key} ${json}`
    })
  }

  it('has a row for each document that has all fields, in the order of their values', async () => {
    await world.write({
      a: { n: 2, t: 'b' }, b: { n: 2, t: 'A' }, c: { n: null, t: {} }, d: { n: 2 }, e: { t: 'a' }, f: { n: '2', t: [] },
      '_design/x': { n: 1, t: 1 },
    })
    expect(await world.rows(indexOn(['n', 't']))).to.deep.equal([
      'c [null,{}]', 'b [2,"A"]', 'a [2,"b"]', 'f ["2",[]]',
    ])
    expect(await world.rows(indexOn(['t']))).to.deep.equal(['e ["a"]', 'b ["A"]', 'a ["b"]', 'f [[]]', 'c [{}]'])
  })

  it('reads nested, dotted and special fields', async () => {
    await world.write({
      a: { x: { y: 1 }, list: [{ z: 1 }, 5] }, b: { 'x.y': 2, list: [{ z: 2 }] }, c: { x: 5, list: {} },
    })
    expect(await world.rows(indexOn(['x.y']))).to.deep.equal(['a [1]'])
    expect(await world.rows(indexOn(['x\\.y']))).to.deep.equal(['b [2]'])
    expect(await world.rows(indexOn(['list.0.z', '_id']))).to.deep.equal(['a [1,"a"]', 'b [2,"b"]'])
    const [row] = await world.rows(indexOn(['_rev']))
    expect(row).to.match(/^. \["1-[0-9a-f]{32}"\]$/)
  })

  it('contains only documents that its partial filter selects', async () => {
    await world.write({ a: { n: 1, state: 'open' }, b: { n: 2, state: 'shut' }, c: { n: 3 }, d: { state: 'open' } })
    const open = indexOn(['n'], { state: { $eq: 'open' } })
    expect(await world.rows(open)).to.deep.equal(['a [1]'])
    await world.change('b', { n: 0, state: 'open' })
    await world.change('a', { n: 1 })
    expect(await world.rows(open)).to.deep.equal(['b [0]'])
  })

  it('loses the rows of documents that are deleted or lose a field', async () => {
    await world.write({ a: { n: 1 }, b: { n: 2 }, c: { n: 3 } })
    const definition = indexOn(['n'])
    expect(await world.rows(definition)).to.have.length(3)
    await world.change('a', null)
    await world.change('b', { m: 2 })
    await world.change('c', { n: 4 })
    expect(await world.rows(definition)).to.deep.equal(['c [4]'])
  })

  it('is ordered by partition when it is partitioned', async () => {
    await world.write({ 'q:1': { n: 1 }, 'p:2': { n: 2 }, 'p:1': { n: 3 }, '_design/x': { n: 1 } })
    const definition = indexOn(['n'], undefined, true)
    expect(await world.rows(definition)).to.deep.equal(['p:2 [2]', 'p:1 [3]', 'q:1 [1]'])
    const lower = { key: partitionPrefix('p') + encoder.encode([3]), inclusive: true }
    const source = { kind: 'index', index: indexId(definition), through: 0, ranges: [{ lower }] } as const
    const found = (await world.find({ source })).filter(row => row.kind === 'found')
    expect(found.map(({ id }) => id)).to.deep.equal(['p:1', 'q:1'])
  })

  it('of conflicts finds the same documents as a scan, as conflicts come and go', async () => {
    const definition = indexOn(['_conflicts'])
    const found = async (): Promise<readonly string[]> => {
      await world.build(definition)
      const sources: readonly FindRequest['source'][] =
        [{ kind: 'documents' }, { kind: 'index', index: indexId(definition), through: 0, ranges: [{}] }]
      return Promise.all(sources.map(async source => {
        const rows = await world.find({ source, selector: '{"_conflicts":{"$exists":true}}', documents: 'leaves' })
        return rows.map(row => row.kind === 'found' ? row.id : '').join('')
      }))
    }
    await world.write({ torn: { n: 1 }, whole: { n: 2 } })
    expect(await found()).to.deep.equal(['', ''])
    const conflict = { id: 'torn', path: { start: 1, ids: ['0'] }, deleted: false, body: json({}) }
    await world.replica.storeRevisions({ revisions: [conflict], revsLimit: 10, external: true }, context)
    expect(await found()).to.deep.equal(['torn', 'torn'])
    await world.change('torn', null)
    expect(await found()).to.deep.equal(['', ''])
  })

  it('counts the rows of ranges and groups', async () => {
    await world.write(Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`d${at}`, { n: at % 3, m: at }])))
    const definition = indexOn(['n', 'm'])
    await world.build(definition)
    const lower = { key: encoder.encode([1]), inclusive: true }
    expect(await counts(definition, 0, { lower })).to.deep.equal(['null 200'])
    expect(await counts(definition, 1, { lower })).to.deep.equal(['[1] 100', '[2] 100'])
    expect(await counts(definition, 'exact', { lower: { key: encoder.encode([2, 299]), inclusive: true } }))
      .to.deep.equal(['[2,299] 1'])
  })

  it('aggregates many rows that agree by counting them', async () => {
    await world.write(Object.fromEntries(Array.from({ length: 2000 }, (_, at) =>
      [`m${at}`, { genre: `g${at % 3}`, votes: at % 2 }])))
    const definition = indexOn(['genre', 'votes', '_id'])
    await world.build(definition)
    const aggregate = JSON.stringify({ group_by: ['genre'], aggregates: { votes: { $sum: 'votes' } } })
    const source = { kind: 'index', index: indexId(definition), through: 0, ranges: [{}] } as const
    const rows = await world.find({ source, documents: 'none', aggregate, isExact: true })
    const progress = rows.filter(row => row.kind === 'progress')
    expect(progress.reduce((sum, { matches }) => sum + matches, 0)).to.equal(2000)
    expect(progress.reduce((sum, { keysExamined }) => sum + keysExamined, 0)).to.be.below(30)
    const aggregation = new Aggregation(parseAggregateQuery(JSON.parse(aggregate)))
    for (const { groups } of progress) if (groups !== undefined) aggregation.addEncoded(groups)
    expect(aggregation.rows()).to.deep.equal([333, 334, 333].map((votes, at) =>
      `{"key":{"genre":"g${at}"},"value":{"votes":${votes}}}`))
  })

  it('lists documents whose row cannot be made, and contains the others', async () => {
    await world.write({ a: { n: 'x'.repeat(2_000_000) }, b: { n: 1 } })
    const definition = indexOn(['n'])
    expect(await world.rows(definition)).to.deep.equal(['b [1]'])
    const { failedCount, failures } = await world.info(definition)
    expect([failedCount, failures[0]!.id]).to.deep.equal([1, 'a'])
    expect(failures[0]!.error).to.match(/^The row cannot be indexed: /)
  })

  it('is built anew for another version of the collation, as views are', () => {
    const parts = { turns: new Turns(new RealClock()), clock: new RealClock(), machine: { testInTime: () => true } }
    const sandbox = new MemorySandbox()
    for (const indexer of [new QueryIndexer(parts), new JavaScriptIndexer({ ...parts, sandbox, database: '' })]) {
      expect(indexer.versionOf()).to.contain(rootCollationVersion.collator)
    }
  })

  it('of another kind is refused, and does not disturb the others', async () => {
    await world.write({ a: { n: 1 } })
    const other = { ...indexOn(['n']), kind: 'text' }
    expect(await failureOf(world.build(other))).to.equal('unsupported')
    await world.reopen()
    expect(await failureOf(world.build(other))).to.equal('unsupported')
    expect(await world.rows(indexOn(['n']))).to.deep.equal(['a [1]'])
  })

  it('is refused when its fields or its filter are not valid', async () => {
    await world.write({ a: { n: 1 } })
    const definition = indexOn(['n'])
    for (const map of ['', '{}', '{"fields":["a..b"]}', '{"fields":["n"],"partial_filter_selector":{"n":{"$no":1}}}']) {
      expect(await failureOf(world.build({ ...definition, map })), map).to.equal('compilation')
    }
  })
})

describe('patterns that take too long', () => {
  /** Ends each test of a pattern on a text that contains `slow`. */
  const machine = { testInTime: (_pattern: RegExp, text: string) => text.includes('slow') ? null : true }
  /** May backtrack, so it is tested with a limit. */
  const pattern = { $regex: '(a+)+$' }
  let world: QueryWorld
  beforeEach(async () => { world = await QueryWorld.open(machine) })
  afterEach(() => world.close())

  it('in a partial filter leave out some documents, and end the build behind ten in a row', async () => {
    await world.write({ a: { t: 'fast' }, b: { t: 'slow' } })
    const definition = indexOn(['t'], { t: pattern })
    expect(await world.rows(definition)).to.deep.equal(['a ["fast"]'])
    expect((await world.info(definition)).failures[0]!.error).to.contain('took more than')
    await world.write(Object.fromEntries(Array.from({ length: 25 }, (_, at) => [`d${at}`, { t: 'slow' }])))
    await world.write({ e: { t: 'faster' } })
    const error = await world.build(definition).catch((failure: unknown) => failure)
    expect(error).to.be.instanceOf(ReplicaError).with.property('code', 'exhausted')
    expect((await world.info(definition)).failedCount).to.equal(26)
    expect(await world.rows(definition)).to.deep.equal(['a ["fast"]', 'e ["faster"]'])
  })

  it('in a partial filter leave out no document because of others', async () => {
    let now = 0
    const clock = { monotonic: () => now } as Clock
    const slow = { testInTime: () => { now += 100; return true } }
    const indexer = new QueryIndexer({ turns: new Turns(new RealClock()), clock, machine: slow })
    const documents = Array.from({ length: 100 }, (_, at): ChangeRow => ({
      sequence: at + 1, id: `d${at}`, leaves: [{ revision: '1-a', deleted: false }], body: Buffer.from('{"t":"x"}'),
    }))
    const definition = indexOn(['t'], { t: pattern })
    for (let at = 0; at < documents.length;) {
      const mapped = await indexer.map(definition, documents.slice(at))
      expect(mapped).to.have.length.above(0)
      expect(mapped.filter(({ error }) => error !== undefined)).to.deep.equal([])
      at += mapped.length
    }
  })

  it('in a selector end the call', async () => {
    await world.write({ a: { t: 'fast' }, b: { t: 'slow' } })
    const definition = indexOn(['t'])
    await world.build(definition)
    const index = { kind: 'index', index: indexId(definition), through: 0, ranges: [{}] } as const
    for (const source of [{ kind: 'documents' } as const, index]) {
      for (const documents of ['none', 'winner'] as const) {
        const request = { selector: JSON.stringify({ t: pattern }), source, documents }
        const error = await world.find(request).catch((failure: unknown) => failure)
        expect(error).to.be.instanceOf(ReplicaError).with.property('code', 'exhausted')
        expect((error as Error).message).to.contain('$regex')
        expect((await world.find({ ...request, limit: 1 })).filter(({ kind }) => kind === 'found')).to.have.length(1)
      }
    }
  })
})
