import assert from 'node:assert/strict'
import { aggregateJson, parseAggregateQuery } from '../aggregates/aggregate-query.ts'
import { Aggregation } from '../aggregates/aggregation.ts'
import { SortKeyEncoder } from '../collation/sort-key.ts'
import type { FindProgress, FindRequest, FindRow, FoundDocument, RowRange } from '../contracts/index-replica.ts'
import { indexId, progressKeysMax } from '../contracts/index-replica.ts'
import type { CallContext } from '../contracts/shard-replica.ts'
import type { JsonObject } from '../json/json-text.ts'
import { queryIndexDefinition } from '../mango/query-index.ts'
import { decodeViewRow } from '../views/view-row-codec.ts'
import { assertFails, byKeys, context, type IndexFixture } from './index-fixture.ts'
import { randomNumbers } from './random-numbers.ts'

const byAge = queryIndexDefinition({ fields: ['age', 'name'], partitioned: false })
const byTeam = queryIndexDefinition({ fields: ['team'], partitioned: false })
const encoder = new SortKeyEncoder('root')
const documents: FindRequest =
  { selector: '{}', source: { kind: 'documents' }, descending: false, documents: 'winner' }

function throughIndex(
  ranges: readonly RowRange[] = [{}], through: number | 'newest' = 0,
): FindRequest['source'] & { readonly kind: 'index' } {
  return { kind: 'index', index: indexId(byAge), through, ranges }
}

/** Returns the range of ages from `from` to below `to`. */
function ages(from: number, to: number): RowRange {
  const bound = (age: number) => ({ key: encoder.encode([age]), inclusive: true })
  return { lower: bound(from), upper: bound(to) }
}

interface Answer {
  readonly rows: readonly FindRow[]
  readonly found: readonly FoundDocument[]
  readonly progress: readonly FindProgress[]
}

class Finder {
  readonly #fixture: IndexFixture

  constructor(fixture: IndexFixture) {
    this.#fixture = fixture
  }

  async find(request: Partial<FindRequest> & { readonly match?: JsonObject } = {}): Promise<Answer> {
    const { match, ...members } = request
    const rows: FindRow[] = []
    const full = { ...documents, ...(match && { selector: JSON.stringify(match) }), ...members }
    for await (const page of this.#fixture.indexes.find(full, context)) rows.push(...page)
    assert.deepEqual(rows.map(({ kind }) => kind === 'head').indexOf(true), full.source.kind === 'index' ? 0 : -1)
    return {
      rows: rows.filter(({ kind }) => kind !== 'head'),
      found: rows.filter(row => row.kind === 'found'),
      progress: rows.filter(row => row.kind === 'progress'),
    }
  }

  async ids(request: Partial<FindRequest> & { readonly match?: JsonObject } = {}): Promise<string> {
    return (await this.find(request)).found.map(({ id }) => id).join(' ')
  }

  async write(bodies: Readonly<Record<string, JsonObject>>): Promise<void> {
    for (const [id, body] of Object.entries(bodies)) await this.#fixture.write(id, body)
    await this.#fixture.build(byAge)
  }
}

const people = {
  anna: { age: 30, name: 'Anna' }, bert: { age: 20, name: 'Bert', pets: ['cat'] }, carl: { age: 30, name: 'Carl' },
  dora: { age: 40 }, emil: { name: 'Emil' },
}

/** The sums of the numbers of all progress rows: examined keys, examined documents, matches. */
function sums({ progress }: Answer): readonly number[] {
  const sum = (of: (row: FindProgress) => number): number => progress.reduce((total, row) => total + of(row), 0)
  return [sum(row => row.keysExamined), sum(row => row.documentsExamined), sum(row => row.matches)]
}

export function findCases(fixture: IndexFixture): void {
  const finder = new Finder(fixture)

  describe('finding documents', () => {
    it('lists the documents that match by id, both ways and between ids', async () => {
      await finder.write({ ...people, '_design/d': { age: 30 } })
      await fixture.write('carl', null)
      assert.equal(await finder.ids(), 'anna bert dora emil')
      assert.equal(await finder.ids({ match: { age: { $lte: 30 } }, descending: true }), 'bert anna')
      const start = { id: 'bert', inclusive: false }
      const end = { id: 'emil', inclusive: false }
      assert.equal(await finder.ids({ source: { kind: 'documents', start, end } }), 'dora')
      const reversed = { kind: 'documents', start: end, end: start } as const
      assert.equal(await finder.ids({ source: reversed, descending: true }), 'dora')
      const { found: [anna] } = await finder.find({ match: { _id: 'anna' } })
      const { found: [same] } = await finder.find({ match: { _rev: anna!.revision! } })
      assert.deepEqual(same, anna)
      assert.deepEqual(JSON.parse(Buffer.from(anna!.body!).toString()), people.anna)
      assert.deepEqual([anna!.range, anna!.key, anna!.number, anna!.value.length], [0, '', 0, 0])
    })

    it('through an index has the order, the ranges and the fields of its rows', async () => {
      await finder.write(people)
      assert.equal(await finder.ids({ source: throughIndex() }), 'bert anna carl')
      assert.equal(await finder.ids({ source: throughIndex(), descending: true }), 'carl anna bert')
      const source = throughIndex([ages(25, 50), ages(0, 25)])
      assert.equal(await finder.ids({ source }), 'anna carl bert')
      assert.equal(await finder.ids({ source, descending: true }), 'carl anna bert')
      assert.equal(await finder.ids({ source, match: { name: { $ne: 'Anna' } } }), 'carl bert')
      const { found } = await finder.find({ source })
      const fields = ['[30,"Anna"]', '[30,"Carl"]', '[20,"Bert"]']
      assert.deepEqual(found.map(({ value }) => decodeViewRow(value).key), fields)
      assert.deepEqual(found.map(({ range, key }) => [range, key]), [
        [0, encoder.encode([30, 'Anna'])], [0, encoder.encode([30, 'Carl'])], [1, encoder.encode([20, 'Bert'])],
      ])
    })

    it('counts what it examines, and ends at the limit', async () => {
      await finder.write({ ...people, '_design/d': {} })
      assert.deepEqual(sums(await finder.find({ match: { age: 30 } })), [6, 6, 2])
      assert.deepEqual(sums(await finder.find({ match: { age: 30 }, limit: 1 })), [2, 2, 1])
      assert.deepEqual(sums(await finder.find({ match: { pets: ['cat'] }, source: throughIndex() })), [3, 3, 1])
      assert.equal(await finder.ids({ source: throughIndex(), limit: 2 }), 'bert anna')
      for (const source of [documents.source, throughIndex()]) {
        assert.deepEqual((await finder.find({ source, limit: 0 })).rows, [])
        const counted = await finder.find({ source, match: { age: 30 }, countOnly: true })
        assert.deepEqual([counted.found, sums(counted)[2]], [[], 2])
        assert.equal(sums(await finder.find({ source, countOnly: true, limit: 2 }))[2], 2)
      }
    })

    it('aggregates the matches in place of a list of them', async () => {
      const many = Array.from({ length: progressKeysMax + 50 }, (_, at) => [`m${at}`, { age: at % 3, name: 'many' }])
      await finder.write({ ...people, ...Object.fromEntries(many) as Record<string, JsonObject> })
      const query = parseAggregateQuery({ group_by: ['age'], aggregates: { n: { $count: true } } })
      const aggregate = JSON.stringify(aggregateJson(query))
      const match = { name: { $gt: 'Anna' }, age: { $gte: 1 } }
      for (const request of [
        { source: documents.source }, { source: throughIndex() }, { source: throughIndex(), documents: 'none' },
      ] as const) {
        const answer = await finder.find({ ...request, match, aggregate })
        assert.deepEqual(answer.found, [])
        const aggregation = new Aggregation(query)
        for (const { groups } of answer.progress) if (groups !== undefined) aggregation.addEncoded(groups)
        assert.deepEqual(aggregation.rows(), [
          '{"key":{"age":1},"value":{"n":350}}', '{"key":{"age":2},"value":{"n":350}}',
          '{"key":{"age":20},"value":{"n":1}}', '{"key":{"age":30},"value":{"n":1}}',
        ])
        assert.equal(sums(answer)[2], 702)
      }
      const none = await finder.find({ match: { age: 99 }, aggregate })
      assert.deepEqual(none.progress.map(({ groups }) => groups), none.progress.map(() => undefined))
      await assertFails(finder.find({ aggregate: '{"aggregates":1}' }), 'protocol')
    })

    it('aggregates rows of exact ranges as it does one by one, in groups of every size', async () => {
      const sizes = [1, 300, 2, 2, 60, 64, 129, 1]
      const bodies = sizes.flatMap((size, age) => Array.from({ length: size }, (_, at): [string, JsonObject] =>
        [`s${age}-${at}`, { age, name: at % 3 === 0 ? 'x' : `n${at % 17}` }]))
      await finder.write(Object.fromEntries(bodies))
      for (const aggregated of [
        { group_by: ['age'], aggregates: { n: { $count: true }, sum: { $sum: 'age' } } },
        { group_by: ['name'], aggregates: { n: { $count: 'age' }, ages: { $distinct: 'age' } } },
        { aggregates: { avg: { $avg: 'age' }, most: { $max: 'name' }, least: { $min: 'name' } } },
      ] as const) {
        const query = parseAggregateQuery(aggregated)
        const aggregate = JSON.stringify(aggregateJson(query))
        for (const ranges of [[{}], [ages(1, 2)], [ages(0, 1), ages(3, 7)], [ages(20, 30)]]) {
          const request = { source: throughIndex(ranges), documents: 'none', aggregate } as const
          const rowsOf = async (options: Partial<FindRequest>): Promise<[readonly string[], number, Answer]> => {
            const answer = await finder.find({ ...request, ...options })
            const aggregation = new Aggregation(query)
            for (const { groups } of answer.progress) if (groups !== undefined) aggregation.addEncoded(groups)
            return [aggregation.rows(), sums(answer)[2]!, answer]
          }
          const [expected, matches] = await rowsOf({})
          const [rows, counted, { progress }] = await rowsOf({ isExact: true })
          assert.deepEqual([rows, counted], [expected, matches])
          const last = progress.at(-1)
          if (last !== undefined) assert.deepEqual((await rowsOf({ isExact: true, after: last }))[1], 0)
        }
      }
    })

    it('ends with its progress up to the last place that was examined', async () => {
      await finder.write(people)
      const { rows, progress } = await finder.find({ match: { age: 20 } })
      assert.equal(rows.at(-1), progress.at(-1))
      assert.deepEqual([progress.at(-1)!.id, progress.at(-1)!.key], ['emil', ''])
      const limited = await finder.find({ source: throughIndex(), limit: 1 })
      const { id, key } = limited.progress.at(-1)!
      assert.deepEqual([id, key], ['bert', encoder.encode([20, 'Bert'])])
      assert.deepEqual((await finder.find({ source: throughIndex([]) })).rows, [])
    })

    it('continues strictly behind the place of each row of an answer', async () => {
      await finder.write(people)
      const match = { name: { $gt: 'B' } }
      for (const source of [documents.source, throughIndex(), throughIndex([ages(30, 50), {}])]) {
        for (const descending of [false, true]) {
          const { rows, found } = await finder.find({ source, descending, match })
          assert(found.length > 1)
          for (const [at, row] of rows.entries()) {
            assert(row.kind !== 'head')
            const rest = await finder.find({ source, descending, match, after: row })
            assert.deepEqual(rest.found, rows.slice(at + 1).filter(({ kind }) => kind === 'found'))
          }
        }
      }
    })

    it('reads only the documents that also have a row with a key in a second index', async () => {
      // The rows of both indexes take several pages of summaries in an engine that has them.
      const many = Array.from({ length: 400 }, (_, at): [string, JsonObject] =>
        [`m${String(at).padStart(3, '0')}`, { age: at % 20, name: `n${at % 11}`, ...at % 3 > 0 && { team: at % 5 } }])
      await finder.write(Object.fromEntries(many))
      await fixture.build(byTeam)
      const within = { index: indexId(byTeam), key: encoder.encode([2]) }
      const inTeam = (): readonly string[] => many.filter(([, { team }]) => team === 2).map(([id]) => id)
      for (const ranges of [[{}], [ages(7, 8)], [ages(5, 30), ages(0, 2)], [ages(50, 60)]]) {
        for (const descending of [false, true]) {
          const plain = await finder.find({ source: throughIndex(ranges, 'newest'), descending, match: { team: 2 } })
          const source = { ...throughIndex(ranges, 'newest'), within }
          const filtered = await finder.find({ source, descending, match: { team: 2 } })
          assert.deepEqual(filtered.found, plain.found)
          const [keys, , matches] = sums(plain)
          assert.deepEqual(sums(filtered), [keys, matches, matches])
          for (const at of [1, plain.found.length - 3]) {
            const after = filtered.found[at]
            if (after === undefined) continue
            const rest = await finder.find({ source, descending, match: { team: 2 }, after, limit: 3 })
            assert.deepEqual(rest.found, plain.found.slice(at + 1, at + 4))
          }
        }
      }
      const all = { ...throughIndex([{}], 'newest'), within }
      const read = async (): Promise<readonly string[]> =>
        (await finder.find({ source: all, match: { team: 2 } })).found.map(({ id }) => id).toSorted()
      assert.deepEqual(await read(), inTeam())
      // A document that enters the team is found, although the second index was not asked to be up to date.
      await fixture.write('m000', { age: 1, name: 'late', team: 2 })
      await fixture.build(byAge)
      assert.deepEqual(await read(), ['m000', ...inTeam()])
      const unknown = { ...all, within: { index: indexId(byKeys), key: '' } }
      assert.equal((await finder.find({ source: unknown, match: { team: 2 } })).found.length, inTeam().length + 1)
    })

    it('answers from the fields of rows without reading documents', async () => {
      await finder.write(people)
      const match = { name: 'Carl', _id: 'carl' }
      const covered = await finder.find({ source: throughIndex(), documents: 'none', match })
      const read = covered.found.map(({ id, revision, body }) => [id, revision, body])
      assert.deepEqual(read, [['carl', undefined, undefined]])
      assert.deepEqual(sums(covered), [3, 0, 1])
    })

    it('without an index returns only revisions when no documents are asked for', async () => {
      await finder.write(people)
      const { found } = await finder.find({ documents: 'none', match: { pets: { $size: 1 } } })
      const read = found.map(({ id, revision, body }) => [id, typeof revision, body])
      assert.deepEqual(read, [['bert', 'string', undefined]])
    })

    it('shows and returns conflicts when they are asked for', async () => {
      await fixture.store('torn', 'ffffffffffffffffffffffffffffffff', { age: 1, name: 'x' })
      await fixture.store('torn', '00000000000000000000000000000000', { age: 2, name: 'y' })
      await finder.write({ whole: { age: 1, name: 'z' } })
      const match = { _conflicts: { $size: 1 } }
      for (const source of [documents.source, throughIndex()]) {
        const { found } = await finder.find({ source, match, documents: 'leaves' })
        assert.deepEqual(found.map(({ id, leaves }) => [id, leaves]), [['torn', [
          { revision: '1-ffffffffffffffffffffffffffffffff', deleted: false },
          { revision: '1-00000000000000000000000000000000', deleted: false },
        ]]])
        assert.equal(await finder.ids({ source, match }), '')
        assert.equal((await finder.find({ source })).found[0]!.leaves, undefined)
      }
    })

    it('through an index that is behind tests the documents as they are now', async () => {
      await finder.write(people)
      await fixture.write('anna', { age: 30, name: 'Anne' })
      await fixture.write('bert', null)
      const { found, progress } = await finder.find({ source: throughIndex(), match: { name: 'Anne' } })
      assert.deepEqual(found.map(({ id, value }) => [id, decodeViewRow(value).key]), [['anna', '[30,"Anna"]']])
      assert.equal(progress.at(-1)!.documentsExamined, 2)
      await assertFails(finder.find({ source: throughIndex([{}], 'newest') }), 'not_hosted')
    })

    it('reports progress when nothing matches', async () => {
      const count = 2 * progressKeysMax + 10
      for (let i = 0; i < count; i++) await fixture.write(`doc${i}`, { age: i, name: '' })
      await fixture.build(byAge)
      for (const source of [documents.source, throughIndex()]) {
        const answer = await finder.find({ source, match: { age: -1 } })
        assert(answer.progress.every(({ keysExamined }) => keysExamined <= progressKeysMax))
        assert(answer.progress.length >= 3)
        assert.deepEqual(sums(answer), [count, count, 0])
        const rest = await finder.find({ source, match: { age: -1 }, after: answer.progress[0]! })
        assert.equal(sums(rest)[0], count - answer.progress[0]!.keysExamined)
        const rare = await finder.find({ source, match: { age: { $in: [700, 1900] } }, limit: 3 })
        assert.deepEqual([rare.found.length, sums(rare)], [2, [count, count, 2]])
      }
    })

    it('equals a filter of all documents, for random documents and selectors', async () => {
      const random = randomNumbers(7)
      const value = (): unknown => [null, true, 0, 1, 2.5, 'a', 'b', [1], { x: 1 }][random(9)]
      const bodies = new Map<string, JsonObject>()
      for (let i = 0; i < 150; i++) {
        const body = { ...(random(4) > 0 && { age: value() }), ...(random(4) > 0 && { name: value() }) } as JsonObject
        bodies.set(`doc${i}`, body)
        await fixture.write(`doc${i}`, body)
      }
      await fixture.build(byAge)
      const order = (a: unknown, b: unknown): number => encoder.encode(a) < encoder.encode(b) ? -1 : 1
      for (let round = 0; round < 20; round++) {
        const [low, high] = [value(), value()]
        const match = { age: { $gte: low, $lt: high } } as JsonObject
        const isIn = ({ age }: JsonObject): boolean => age !== undefined
          && (encoder.encode(age) === encoder.encode(low) || order(low, age) < 0)
          && encoder.encode(age) !== encoder.encode(high) && order(age, high) < 0
        const expected = [...bodies].filter(([, body]) => isIn(body)).map(([id]) => id).sort()
        assert.deepEqual((await finder.find({ match })).found.map(({ id }) => id), expected)
        const named = expected.filter(id => bodies.get(id)!['name'] !== undefined)
        const { found } = await finder.find({ match, source: throughIndex() })
        assert.deepEqual(found.map(({ id }) => id).toSorted(), named)
        const fields = found.map(({ value: row }) => JSON.parse(decodeViewRow(row).key) as unknown)
        assert.deepEqual(fields, found.map(({ id }) => [bodies.get(id)!['age'], bodies.get(id)!['name']]))
      }
    })

    it('fails for selectors and indexes that are not suitable, and for calls that are refused', async () => {
      await finder.write(people)
      for (const selector of ['', '{"age":', '5', '{"age":{"$unknown":1}}']) {
        await assertFails(finder.find({ selector }), 'protocol')
        await assertFails(finder.find({ selector, source: throughIndex() }), 'protocol')
      }
      await fixture.build(byKeys)
      const other = { kind: 'index', through: 0, ranges: [{}] } as const
      await assertFails(finder.find({ source: { ...other, index: 'unknown' } }), 'not_hosted')
      for (const documentsOf of ['none', 'winner'] as const) {
        await assertFails(
          finder.find({ source: { ...other, index: indexId(byKeys) }, documents: documentsOf }), 'protocol')
      }
      const refused = async (call: Partial<CallContext>, source: FindRequest['source']): Promise<void> => {
        for await (const page of fixture.indexes.find({ ...documents, source }, { ...context, ...call })) void page
      }
      for (const source of [documents.source, throughIndex()]) {
        await assertFails(refused({ history: 'another' }, source), 'other_history')
        await assertFails(refused({ signal: AbortSignal.abort() }, source), 'cancelled')
      }
    })
  })
}
