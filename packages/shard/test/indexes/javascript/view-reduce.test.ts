import assert from 'node:assert/strict'
import { indexId, type IndexDefinition, type ReducedGroup, SortKeyEncoder } from '@sectional/core'
import { SeededRandom } from '@sectional/runtime'
import { defaultReduceLimit, type ReduceLimit } from '../../../src/indexes/javascript/reduce-limit.ts'
import { collect, context, edit } from '../../shard-world.ts'
import { JavaScriptWorld, viewOf } from './javascript-world.ts'

const encoder = new SortKeyEncoder()
const customSum = 'function (keys, values, rereduce) { return sum(values) }'

interface NaiveRow { readonly id: string; readonly key: readonly number[] | string; readonly value: number }

/** The documents of a replica, whose rows are computed from them without an index. */
class NaiveView {
  static readonly map = 'function (doc) { for (const [key, value] of doc.rows) emit(key, value) }'
  readonly documents = new Map<string, { revision: string; rows: readonly (readonly [NaiveRow['key'], number])[] }>()

  rows(): readonly NaiveRow[] {
    const rows = [...this.documents].flatMap(([id, { rows }]) => rows.map(([key, value]) => ({ id, key, value })))
    return rows.toSorted((a, b) => encoder.encode(a.key) < encoder.encode(b.key) ? -1 : 1)
  }

  groups(level: number | 'exact', reduce: (rows: readonly NaiveRow[]) => unknown): readonly unknown[] {
    const keyOf = ({ key }: NaiveRow): unknown =>
      level === 0 ? null : level === 'exact' || typeof key === 'string' ? key : key.slice(0, level)
    const groups = Map.groupBy(this.rows(), row => JSON.stringify(keyOf(row)))
    return [...groups].map(([key, rows]) => [JSON.parse(key), reduce(rows)])
  }
}

describe('reduce functions of views', () => {
  let world: JavaScriptWorld

  beforeEach(async () => { world = await JavaScriptWorld.open() })
  afterEach(() => world.close())

  const total = (rows: readonly NaiveRow[]): number => rows.reduce((sum, { value }) => sum + value, 0)
  const reduces: Readonly<Record<string, (rows: readonly NaiveRow[]) => unknown>> = {
    _count: rows => rows.length,
    _sum: total,
    [customSum]: total,
    _stats: rows => {
      const values = rows.map(({ value }) => value)
      const sumsqr = values.reduce((sum, value) => sum + value * value, 0)
      return { sum: total(rows), count: rows.length, min: Math.min(...values), max: Math.max(...values), sumsqr }
    },
    'function (keys, values, rereduce) { return Math.max.apply(null, values) }': rows =>
      Math.max(...rows.map(({ value }) => value)),
  }

  for (const seed of [1, 2, 3]) {
    it(`give the groups of all levels that a naive computation gives, with seed ${seed}`, async function () {
      this.timeout(20_000)
      const random = new SeededRandom(seed)
      const below = (limit: number): number => Math.floor(random.fraction() * limit)
      const naive = new NaiveView()
      const randomKey = (): NaiveRow['key'] =>
        below(10) === 0 ? 'text' : Array.from({ length: below(4) }, () => below(4))
      for (let round = 0; round < 3; round++) {
        await changeDocuments(naive, round === 0 ? 600 : 60)
        for (const [reduce, expected] of Object.entries(reduces)) {
          const view = viewOf(NaiveView.map, reduce)
          for (const level of [0, 1, 2, 3, 9, 'exact'] as const) {
            assert.deepEqual(await world.groups(view, level), naive.groups(level, expected), `${reduce} ${level}`)
          }
        }
      }

      async function changeDocuments({ documents }: NaiveView, count: number): Promise<void> {
        for (let left = count; left > 0; left--) {
          const id = `d${below(800)}`
          const rows = Array.from({ length: below(4) }, () => [randomKey(), below(100)] as const)
          const change = edit(id, documents.get(id)?.revision ?? null, { rows }, documents.has(id) && below(3) === 0)
          const reply = await world.replica.updateDocuments({ edits: [change], revsLimit: 10 }, context)
          assert(reply.kind === 'decided')
          const [outcome] = reply.outcomes
          assert(outcome?.kind === 'updated')
          const { start, ids: [hash] } = outcome.path
          if (change.deleted) documents.delete(id)
          else documents.set(id, { revision: `${start}-${hash}`, rows })
        }
      }
    })
  }

  it('receive keys with ids and values in the order of the index', async () => {
    await world.write({ b: { k: 2 }, a: { k: 2 }, c: { k: 1 } })
    const reduce = `function (keys, values, rereduce) {
      return rereduce ? [].concat(...values) : keys.map(([key, id], at) => [key, id, values[at], rereduce])
    }`
    assert.deepEqual(await world.groups(viewOf('doc => emit(doc.k, doc._id + "!")', reduce), 'exact'), [
      [1, [[1, 'c', 'c!', false]]], [2, [[2, 'a', 'a!', false], [2, 'b', 'b!', false]]],
    ])
  })

  it('have a failure as their result when they throw', async () => {
    await world.write({ a: { k: 1 }, b: { k: 2 } })
    const reduce = '(keys, values) => { if (values[0] === 2) throw new Error("two"); return values[0] }'
    assert.deepEqual(await world.groups(viewOf('doc => emit(doc.k, doc.k)', reduce), 'exact'), [
      [1, 1], [2, { error: 'reduce_error', reason: 'Error: two (line 1, column 48)' }],
    ])
  })

  it('are reported when they throw', async () => {
    const reports: string[] = []
    const onReduceFailure = (_index: string, reason: string): void => { reports.push(reason) }
    const open = await JavaScriptWorld.open(undefined, { onReduceFailure })
    await open.write({ a: {} })
    await open.groups(viewOf('doc => emit(1)', '() => { throw 1 }'))
    await open.close()
    assert.deepEqual([...new Set(reports)], ['The reduce function threw 1'])
  })

  it('fail when their results do not shrink', async () => {
    const text = 'x'.repeat(4000)
    await world.write(Object.fromEntries(['a', 'b', 'c'].map(id => [id, { text }])))
    const reduce = '(keys, values, rereduce) => rereduce ? [].concat(...values) : values'
    const view = viewOf('doc => emit(doc._id, doc.text)', reduce)
    assert.deepEqual(await world.groups(view, 'exact'), ['a', 'b', 'c'].map(id => [id, [text]]))
    const [[key, value]] = await world.groups(view) as [[unknown, { error: string; reason: string }]]
    assert.deepEqual([key, value.error], [null, 'reduce_overflow_error'])
    assert.match(value.reason, /^Reduce output must shrink more rapidly: input size: \d+ output size: \d+$/)
  })

  it('may have results that do not shrink as far as the limit allows', async () => {
    const text = 'x'.repeat(4000)
    const reduce = '(keys, values, rereduce) => rereduce ? [].concat(...values) : values'
    const view = viewOf('doc => emit(null, doc.text)', reduce)
    const reduced = async (limit: Partial<ReduceLimit>): Promise<readonly [isReduced: boolean, reports: number]> => {
      let reports = 0
      const reduceLimit = { ...defaultReduceLimit, ...limit }
      const open = await JavaScriptWorld.open(undefined, { reduceLimit, onReduceOverflow: () => { reports++ } })
      await open.write({ a: { text }, b: { text } })
      const [[, value]] = await open.groups(view) as [[unknown, unknown]]
      await open.close()
      return [Array.isArray(value), reports]
    }
    assert.deepEqual(await reduced({}), [false, 0])
    assert.deepEqual(await reduced({ reduceLimit: 'false' }), [true, 0])
    const [isReduced, reports] = await reduced({ reduceLimit: 'log' })
    assert(isReduced && reports > 0)
    assert.deepEqual(await reduced({ reduceLimitThreshold: 10_000 }), [true, 0])
    assert.deepEqual(await reduced({ reduceLimitRatio: 0.5 }), [true, 0])
  })

  it('reduce lists with many bytes in pieces', async () => {
    const text = 'x'.repeat(600_000)
    await world.write(Object.fromEntries(['a', 'b', 'c', 'd', 'e'].map(id => [id, { text }])))
    const reduce = '(keys, values, rereduce) => rereduce ? sum(values) + 1000 : values.length'
    // The five rows are three pieces. Each text alone is below the limit for one call, and two are beyond it.
    assert.deepEqual(await world.groups(viewOf('doc => emit(null, doc.text)', reduce)), [[null, 1005]])
  })

  describe('again, by coordinators', () => {
    async function groupsOf(view: IndexDefinition, groupLevel: number | 'exact'): Promise<readonly Uint8Array[]> {
      const read = { index: indexId(view), through: 0, ranges: [{}], descending: false, groupLevel }
      const found = await collect(world.indexes.reduceIndex(read, context))
      return found.filter((row): row is ReducedGroup => row.kind === 'group').map(({ value }) => value)
    }

    for (const reduce of ['_sum', customSum]) {
      it(`combine the groups of several shards: ${reduce}`, async () => {
        await world.write({ a: { k: ['x', 1], v: 1 }, b: { k: ['x', 2], v: 2 }, c: { k: 'y', v: 4 } })
        const view = viewOf('doc => emit(doc.k, doc.v)', reduce)
        await world.build(view)
        const groups = await groupsOf(view, 1)
        assert.deepEqual(await world.again(view, groups.map(group => [group, group, group])), [['y', 12], [['x'], 9]])
        const [all] = await groupsOf(view, 0)
        assert.deepEqual(await world.again(view, [[all!, all!]]), [[null, 14]])
      })
    }

    it('have the first failure of a shard as their result', async () => {
      await world.write({ a: { v: 1 }, b: { v: 'no' } })
      const reduce = '(keys, values) => { if (values[0] === "no") throw 1; return 1 }'
      const view = viewOf('doc => emit(doc.v, doc.v)', reduce)
      await world.build(view)
      const [good, failed] = await groupsOf(view, 'exact')
      const failure = { error: 'reduce_error', reason: 'The reduce function threw 1' }
      assert.deepEqual(await world.again(view, [[good!, failed!, good!], [good!, good!]]), [[1, failure], [1, 1]])
    })

    it('reject when _stats cannot reduce a row', async () => {
      await world.write({ a: {} })
      await assert.rejects(world.groups(viewOf('doc => emit(1, "text")', '_stats')), { error: 'invalid_value' })
    })
  })
})
