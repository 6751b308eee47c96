import { expect } from 'chai'
import fc from 'fast-check'
import { matchesNaively, orderOf, orderOfIds, valuesOf } from '../src/naive-find.ts'
import { TestCluster } from '../src/test-cluster.ts'
import type { HttpClient } from '../src/http-client.ts'

type Json = Readonly<Record<string, unknown>>

const texts = ['', 'a', 'A', 'ab', 'b', 'B', 'é', 'e\u0301', 'z']
const scalar = fc.oneof(
  fc.constant(null), fc.boolean(), fc.integer({ min: -3, max: 3 }), fc.constant(1.5), fc.constantFrom(...texts),
)
const value: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 5, arbitrary: scalar }, fc.array(scalar, { maxLength: 2 }),
  scalar.map(d => ({ d })),
)
const document: fc.Arbitrary<Json> = fc.record({ a: value, b: value, c: value }, { requiredKeys: [] })
const documents = fc.array(document, { minLength: 40, maxLength: 120 })
  .map(all => all.map((members, at) => ({ ...members, _id: `${texts[at % texts.length]}${at}` })))

const fieldNames = ['a', 'b', 'c', 'c.d', '_id']
const simple: fc.Arbitrary<Json> = fc.oneof(
  fc.tuple(fc.constantFrom('$eq', '$ne', '$lt', '$lte', '$gt', '$gte'), value),
  fc.tuple(fc.constantFrom('$gt', '$gte', '$lt'), scalar),
  fc.tuple(fc.constantFrom('$in', '$nin'), fc.array(value, { maxLength: 3 })),
  fc.tuple(fc.constant('$exists'), fc.boolean()),
  fc.tuple(fc.constant('$type'), fc.constantFrom('null', 'boolean', 'number', 'string', 'array', 'object')),
  fc.tuple(fc.constant('$size'), fc.integer({ min: 0, max: 2 })),
  fc.tuple(fc.constant('$mod'), fc.tuple(fc.constantFrom(2, 3), fc.integer({ min: -1, max: 1 }))),
  fc.tuple(fc.constantFrom('$regex', '$beginsWith'), fc.constantFrom('', 'a', 'A', 'ab', 'e')),
).map(([operator, argument]) => ({ [operator]: argument }))
const condition: fc.Arbitrary<Json> = fc.oneof(
  { weight: 6, arbitrary: simple }, fc.tuple(simple, simple).map(([one, other]) => ({ ...one, ...other })),
  simple.map($not => ({ $not })), simple.map($elemMatch => ({ $elemMatch })), simple.map($allMatch => ({ $allMatch })),
)
const conditions: fc.Arbitrary<Json> = fc.dictionary(
  fc.constantFrom(...fieldNames), condition, { minKeys: 1, maxKeys: 3 },
)
const selector: fc.Arbitrary<Json> = fc.oneof(
  { weight: 5, arbitrary: conditions },
  fc.tuple(fc.constantFrom('$and', '$or', '$nor'), fc.array(conditions, { minLength: 1, maxLength: 3 }), conditions)
    .map(([operator, operands, others]) => ({ [operator]: operands, ...others })),
  conditions.map($not => ({ $not })),
)

const indexes = [['a'], ['b', 'a'], ['c.d', 'a'], ['c', 'b', 'a'], ['a', '_id']]
const partialFilter = { a: { $gt: 0 } }
const partitions = ['p', 'q', 'pq']
const documentsMax = 1000
const databasesOfEachRun = 4
const queriesOfEachDatabase = 40
/** Milliseconds after which a test begins no further query. */
const msMax = 30_000

describe('queries of random documents', function () {
  this.timeout(180_000)
  let cluster: TestCluster
  let http: HttpClient
  before(async () => {
    cluster = await TestCluster.start({ nodes: 1 })
    http = cluster.node(1).http
  })
  after(async function () { await cluster.close(this.currentTest?.state === 'failed') })

  async function send(method: string, path: string, json?: unknown): Promise<any> {
    const { status, body } = await http.send(method, path, { ...(json !== undefined && { json }) })
    expect(status, `${method} ${path} ${JSON.stringify(json)}: ${JSON.stringify(body)}`).to.be.oneOf([200, 201])
    return body
  }

  async function fill(name: string, docs: readonly Json[]): Promise<readonly Json[]> {
    await send('PUT', `/${name}?q=2`)
    await send('POST', `/${name}/_bulk_docs`, { docs })
    for (const [at, fields] of indexes.entries()) {
      await send('POST', `/${name}/_index`, { index: { fields }, ddoc: 'd', name: `${at}` })
    }
    const index = { fields: ['b'], partial_filter_selector: partialFilter }
    await send('POST', `/${name}/_index`, { index, ddoc: 'partial', name: 'p' })
    return docs
  }

  async function fillPartitions(name: string, all: readonly Json[]): Promise<readonly Json[]> {
    await send('PUT', `/${name}?q=2&partitioned=true`)
    const docs = all.map((each, at) => ({ ...each, _id: `${partitions[at % partitions.length]}:${each['_id']}` }))
    await send('POST', `/${name}/_bulk_docs`, { docs })
    for (const [at, fields] of indexes.entries()) {
      const partitioned = at % 2 === 0
      await send('POST', `/${name}/_index`, { index: { fields }, ddoc: `d${partitioned}`, name: `${at}`, partitioned })
    }
    return docs
  }

  const found = async (name: string, query: Json): Promise<any> =>
    send('POST', `/${name}/_find`, { limit: documentsMax, ...query })

  /** Finds the same through each index, without one, page by page, as a number, and in groups. */
  async function checkSelector(name: string, docs: readonly Json[], query: Json): Promise<void> {
    const expected = idsOf(docs.filter(each => matchesNaively(query, each)))
    for (const useIndex of [undefined, ...indexes.keys()]) {
      const use = useIndex === undefined ? {} : { use_index: ['d', `${useIndex}`] }
      const answer = await found(name, { selector: query, fields: ['_id'], ...use })
      expect(idsOf(answer.docs), `through ${useIndex}`).to.have.members(expected)
    }
    expect((await found(name, { selector: query, count: true })).count).to.equal(expected.length)
    const aggregates = { ids: { $distinct: '_id' } }
    const { rows } = await send('POST', `/${name}/_aggregate`, { selector: query, group_by: ['a', 'b'], aggregates })
    expect(rows.flatMap(({ value: { ids } }: any) => ids), 'in groups').to.have.members(expected)
    const paged = await pages(name, { selector: query, fields: ['_id'], limit: 7 })
    expect(idsOf(paged), 'by pages').to.have.members(expected)
  }

  /** Finds the documents that have the fields in their order: with an index, from its rows alone, and in memory. */
  async function checkSort(
    name: string, docs: readonly Json[], query: Json, fields: readonly string[], direction: string,
  ): Promise<void> {
    const sort = (by: readonly string[]): readonly Json[] => by.map(field => ({ [field]: direction }))
    // The query may use the index that ends with `_id`, which has equal rows in the order of texts, not of bytes. Rows
    // with equal keys may have different values, such as one text in two normalization forms.
    const orders = (by: readonly string[]): readonly (readonly Json[])[] =>
      [orderOfIds, orderOf].map(ofEqual => sorted(docs, query, by, direction, ofEqual))
    const expected = (by: readonly string[]): readonly unknown[] => orders(by).map(idsOf)
    const byIndex = await pages(name, { selector: query, sort: sort(fields), limit: 9 })
    expect(expected(fields), 'by an index').to.deep.include(idsOf(byIndex))
    const shown = await found(name, { selector: query, sort: sort(fields), fields })
    const values = (all: readonly Json[]): readonly unknown[] => all.map(each => valuesOf(each, fields))
    expect(orders(fields).map(values), 'the fields of the index').to.deep.include(values(shown.docs))
    const others = fields.toReversed()
    const inMemory = await pages(name, { selector: query, sort: sort(others), sort_in_memory: true, limit: 9 })
    expect(expected(others), 'in memory').to.deep.include(idsOf(inMemory))
  }

  async function checkPartial(name: string, docs: readonly Json[], query: Json): Promise<void> {
    const both = { $and: [query, { b: { $exists: true } }] }
    const expected = docs.filter(each => matchesNaively(both, each) && matchesNaively(partialFilter, each))
    const answer = await found(name, { selector: both, use_index: 'partial', fields: ['_id'] })
    expect(idsOf(answer.docs), 'through the partial index').to.have.members(idsOf(expected))
  }

  /** Finds the same in each partition and in the whole database, with indexes of both kinds. */
  async function checkPartitions(name: string, docs: readonly Json[], query: Json): Promise<void> {
    const expected = docs.filter(each => matchesNaively(query, each))
    const global = await found(name, { selector: query, fields: ['_id'] })
    expect(idsOf(global.docs), 'in all partitions').to.have.members(idsOf(expected))
    for (const partition of partitions) {
      const own = expected.filter(({ _id }) => String(_id).startsWith(`${partition}:`))
      const answer = await pages(`${name}/_partition/${partition}`, { selector: query, fields: ['_id'], limit: 5 })
      expect(idsOf(answer), `in ${partition}`).to.have.members(idsOf(own))
      const { count } = await found(`${name}/_partition/${partition}`, { selector: query, count: true })
      expect(count, `counted in ${partition}`).to.equal(own.length)
    }
  }

  async function pages(name: string, query: Json): Promise<readonly Json[]> {
    const all: Json[] = []
    for (let bookmark: string | undefined; ;) {
      const answer = await found(name, { ...query, ...(bookmark !== undefined && { bookmark }) })
      if (answer.docs.length === 0) return all
      all.push(...answer.docs)
      bookmark = answer.bookmark
    }
  }

  it('give what a filter over all documents gives, through every index, sorted, in pages and counted', async () => {
    await checkQueries('random', fill, async (name, docs, query, fields, direction) => {
      await checkSelector(name, docs, query)
      await checkSort(name, docs, query, fields, direction)
      await checkPartial(name, docs, query)
    })
  })

  it('give what a filter gives in each partition', async () => {
    await checkQueries('parts', fillPartitions, checkPartitions)
  })
})

type Fill = (name: string, docs: readonly Json[]) => Promise<readonly Json[]>
type Check = (
  name: string, docs: readonly Json[], query: Json, fields: readonly string[], direction: string,
) => Promise<void>

/** Checks random queries on databases of random documents. A failure names the seed that repeats it. */
async function checkQueries(prefix: string, fill: Fill, check: Check): Promise<void> {
  const seed = Number(process.env.FIND_SEED ?? Date.now() % 1_000_000)
  const endsAt = performance.now() + msMax
  for (let round = 0; round < databasesOfEachRun && performance.now() < endsAt; round++) {
    const name = `${prefix}${round}`
    const [members] = fc.sample(documents, { seed: seed + round, numRuns: 1 })
    const docs = await fill(name, members!)
    const queries = fc.sample(
      fc.tuple(selector, fc.constantFrom(...indexes), fc.constantFrom('asc', 'desc')),
      { seed: seed + round, numRuns: queriesOfEachDatabase },
    )
    for (const [query, fields, direction] of queries) {
      if (performance.now() > endsAt) break
      try {
        await check(name, docs, query, fields, direction)
      } catch (error) {
        const replay = `FIND_SEED=${seed} npm run test:cluster -- -g 'queries of random documents'`
        throw new Error(`${replay}: database ${name}, ${JSON.stringify(query)}`, { cause: error })
      }
    }
  }
}

function idsOf(docs: readonly Json[]): readonly unknown[] {
  return docs.map(({ _id }) => _id)
}

/**
 * Returns the matching documents that have the fields, in their order.
 *
 * @param ofEqual the order of the ids of documents with equal fields
 */
function sorted(
  docs: readonly Json[], query: Json, by: readonly string[], direction: string, ofEqual: typeof orderOf,
): readonly Json[] {
  const sign = direction === 'asc' ? 1 : -1
  return docs.filter(each => matchesNaively(query, each) && valuesOf(each, by) !== undefined)
    .sort((a, b) => sign * (orderOf(valuesOf(a, by), valuesOf(b, by)) || ofEqual(a['_id'], b['_id'])))
}
