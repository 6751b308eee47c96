import { expect } from 'chai'
import fc from 'fast-check'
import { reduceView } from '../../src/views/view-reduce.ts'
import type { ReduceQuery } from '../../src/contracts/view-query.ts'
import { request } from '../replica-world.ts'
import { between, encoder, everything, IndexWorld, rowsOf, sumOf, testRows } from './index-world.ts'
import type { TestDocument, TestRow } from './index-world.ts'

const documents: readonly TestDocument[] = Array.from({ length: 40 }, (_, i) => ({
  id: `d${i}`, keys: [[i % 3, i % 5], i % 4].slice(0, 1 + i % 2), value: 2 ** (i % 20),
}))
const rows = rowsOf(documents)

/** A reduced group: its key is that of its first row in the order of the index. */
interface Group { readonly name: string; readonly sum: number }

function groupName({ key }: Pick<TestRow, 'key'>, level: ReduceQuery['groupLevel']): string {
  if (level === 0) return 'all'
  return JSON.stringify(Array.isArray(key) && level !== 'exact' ? key.slice(0, level) : key)
}

/** Returns the groups of rows which are in the order of the answer. */
function groupsOf(found: readonly TestRow[], level: ReduceQuery['groupLevel']): readonly Group[] {
  const groups = Map.groupBy(found, row => groupName(row, level))
  return [...groups].map(([name, members]) => ({ name, sum: members.reduce((sum, { value }) => sum + value, 0) }))
}

class Reducer {
  /** The number of values of each group that was reduced again. */
  readonly counts: number[] = []
  readonly reduceAgain: ReduceQuery['reduceAgain'] = async groups => groups.map(values => {
    this.counts.push(values.length)
    const [first] = values
    return Buffer.from(JSON.stringify({ ...JSON.parse(String(Buffer.from(first!))), value: sumOf(values) }))
  })
}

async function reduced(
  world: IndexWorld, via: string, query: Partial<ReduceQuery> & Pick<ReduceQuery, 'groupLevel'>,
): Promise<readonly Group[]> {
  const all = { ...everything, reduceAgain: new Reducer().reduceAgain, ...query }
  const answer = await world.during(reduceView(world.viewScope(via), world.db, all, request()))
  const found = await world.during(testRows(answer.rows))
  await answer.close()
  return found.map(row => ({ name: groupName(row, query.groupLevel), sum: row.value }))
}

describe('a reduction of a view', () => {
  it('returns for every option the same groups as a reduction of all rows', async () => {
    const world = new IndexWorld({ q: 4, coordinator: { listPageRows: 3 } })
    await world.write(documents)
    const key = fc.constantFrom<unknown>(null, 0, 2, 3, [], [1], [1, 3], [1, {}], {})
    const options = fc.record({
      bounds: fc.array(fc.tuple(key, key), { maxLength: 3 }), descending: fc.boolean(), skip: fc.nat(4),
      limit: fc.option(fc.nat(6)), groupLevel: fc.constantFrom<ReduceQuery['groupLevel']>(0, 1, 2, 'exact'),
    })
    await fc.assert(fc.asyncProperty(options, async ({ bounds, descending, skip, limit, groupLevel }) => {
      const order = descending ? rows.toReversed() : rows
      const expected = bounds.flatMap(([lower, upper]) => groupsOf(order.filter(row =>
        encoder.encode(row.key) >= encoder.encode(lower) && encoder.encode(row.key) <= encoder.encode(upper),
      ), groupLevel)).slice(skip, limit === null ? undefined : skip + limit)
      const ranges = bounds.map(([lower, upper]) => between(lower, upper))
      expect(await reduced(world, 'b', { ranges, descending, skip, limit, groupLevel })).to.deep.equal(expected)
      expect(world.openScans).to.equal(0)
    }), { numRuns: 100 })
  })

  it('has no group where there are no rows', async () => {
    const world = new IndexWorld({ q: 4 })
    expect(await reduced(world, 'a', { groupLevel: 0 })).to.deep.equal([])
  })

  it('reduces each group again once, also one of a single shard, but none that is left out', async () => {
    const world = new IndexWorld({ q: 4 })
    await world.write(documents)
    const reducer = new Reducer()
    await reduced(world, 'a', { groupLevel: 0, reduceAgain: reducer.reduceAgain })
    expect(reducer.counts).to.deep.equal([4])
    const single = new Reducer()
    await reduced(world, 'a', { groupLevel: 'exact', skip: 3, limit: 2, reduceAgain: single.reduceAgain })
    expect(single.counts).to.have.length(2)
    const alone = new IndexWorld({ q: 1 })
    await alone.write(documents)
    const last = new Reducer()
    await reduced(alone, 'a', { groupLevel: 0, reduceAgain: last.reduceAgain })
    expect(last.counts).to.deep.equal([1])
  })

  it('gives the values of a group in the order of the shards', async () => {
    const world = new IndexWorld({ q: 8 })
    await world.write(documents)
    const { access } = world.viewScope('a')
    const sums = access.places(world.db).map(place => documents
      .filter(({ id }) => access.placeOf(world.db, id) === place)
      .reduce((sum, { keys, value }) => sum + keys.length * value, 0))
    let given: readonly number[] = []
    const reduceAgain: ReduceQuery['reduceAgain'] = async ([values]) => {
      given = values!.map(value => sumOf([value]))
      return values!.slice(0, 1)
    }
    await reduced(world, 'a', { groupLevel: 0, reduceAgain })
    expect(given).to.deep.equal(sums.filter(sum => sum > 0))
    expect(new Set(given).size).to.be.above(3)
  })

  it('continues behind the last group when a replica fails', async () => {
    for (const q of [1, 3]) {
      const world = new IndexWorld({ q, nodes: ['a', 'b', 'c', 'out'], n: 3 })
      world.pageRows = 2
      await world.write(documents)
      world.faults.set('a', { kind: 'break-scan', afterPages: 2 })
      world.faults.set('b', { kind: 'break-scan', afterPages: 1 })
      for (const descending of [false, true]) {
        const expected = groupsOf(descending ? rows.toReversed() : rows, 'exact')
        for (const [skip, limit] of [[0, null], [3, 9]] as const) {
          expect(await reduced(world, 'out', { groupLevel: 'exact', descending, skip, limit }))
            .to.deep.equal(expected.slice(skip, limit === null ? undefined : skip + limit))
        }
      }
    }
  })

  it('fails with the error of the reduce function, and releases the replicas', async () => {
    const world = new IndexWorld({ q: 3 })
    await world.write(documents)
    const reduceAgain = async (): Promise<never> => { throw new Error('reduce overflow') }
    const failure = await reduced(world, 'a', { groupLevel: 1, reduceAgain }).then(() => '', String)
    expect(failure).to.equal('Error: reduce overflow')
    expect(world.openScans).to.equal(0)
  })
})
