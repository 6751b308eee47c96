import { expect } from 'chai'
import fc from 'fast-check'
import {
  aggregateFields, Aggregation, type AggregateLimits, ApiError, defaultAggregateLimits, fieldAt,
  type JsonObject, parseAggregateQuery, parseFieldPath, SortKeyEncoder,
} from '../../src/index.ts'
import { document } from '../selectors/random-selectors.ts'

interface Row { readonly key: JsonObject; readonly value: JsonObject }

function aggregate(request: JsonObject, documents: readonly unknown[], limits?: AggregateLimits): readonly Row[] {
  const aggregation = new Aggregation(parseAggregateQuery(request), limits)
  for (const each of documents) aggregation.add(each)
  return aggregation.rows().map(row => JSON.parse(row) as Row)
}

const films = [
  { genre: 'scifi', year: 1927, votes: 80 }, { genre: 'scifi', year: 1979, votes: 95 },
  { genre: 'drama', year: 1984, votes: 90 }, { genre: 'drama', year: '1995', votes: null },
  { year: 1985, votes: 0.5 }, { genre: null, year: 2001 },
]
const everything = {
  all: { $count: true }, counted: { $count: 'votes' }, sum: { $sum: 'votes' }, avg: { $avg: 'votes' },
  min: { $min: 'year' }, max: { $max: 'year' }, years: { $distinct: 'year' },
}

describe('aggregation', () => {
  it('groups by values, with a group for documents without the field', () => {
    expect(aggregate({ group_by: ['genre'], aggregates: everything }, films)).to.deep.equal([
      {
        key: {},
        value: { all: 1, counted: 1, sum: 0.5, avg: 0.5, min: 1985, max: 1985, years: [1985] },
      },
      { key: { genre: null }, value: { all: 1, counted: 0, sum: 0, avg: null, min: 2001, max: 2001, years: [2001] } },
      {
        key: { genre: 'drama' },
        value: { all: 2, counted: 2, sum: 90, avg: 90, min: 1984, max: '1995', years: [1984, '1995'] },
      },
      {
        key: { genre: 'scifi' },
        value: { all: 2, counted: 2, sum: 175, avg: 87.5, min: 1927, max: 1979, years: [1927, 1979] },
      },
    ])
  })

  it('has one row without group_by, also of no documents', () => {
    expect(aggregate({ aggregates: everything }, [])).to.deep.equal([
      { key: {}, value: { all: 0, counted: 0, sum: 0, avg: null, min: null, max: null, years: [] } },
    ])
    expect(aggregate({ aggregates: { n: { $count: true } }, group_by: ['genre'] }, [])).to.deep.equal([])
    expect(aggregate({ aggregates: { n: { $count: true } } }, films)).to.deep.equal([{ key: {}, value: { n: 6 } }])
  })

  it('takes the same one of equal texts as the extreme, whichever comes first', () => {
    const request = { aggregates: { min: { $min: 'a' }, max: { $max: 'a' } } }
    const texts = [{ a: 'e\u0301' }, { a: '\u00e9' }]
    const expected = [{ key: {}, value: { min: 'e\u0301', max: '\u00e9' } }]
    expect(aggregate(request, texts)).to.deep.equal(expected)
    expect(aggregate(request, texts.toReversed())).to.deep.equal(expected)
  })

  it('groups equal texts, and adds a document as often as it is there', () => {
    const request = { group_by: ['a'], aggregates: { n: { $count: true }, sum: { $sum: 'b' }, b: { $distinct: 'a' } } }
    const aggregation = new Aggregation(parseAggregateQuery(request))
    aggregation.add({ a: '\u00e9', b: 0.1 }, 10)
    aggregation.add({ a: 'e\u0301', b: 1e308 }, 3)
    aggregation.add({ a: 'e\u0301', b: -1e308 }, 3)
    aggregation.add({ a: 'e', b: 7 }, 1_000_000)
    expect(aggregation.rows().map(row => JSON.parse(row) as Row)).to.deep.equal([
      { key: { a: 'e' }, value: { n: 1_000_000, sum: 7_000_000, b: ['e'] } },
      { key: { a: 'e\u0301' }, value: { n: 16, sum: 1, b: ['e\u0301'] } },
    ])
  })

  it('sums exactly', () => {
    const numbers = [1e16, 1, -1e16, 0.1, 0.2, -0.1, -0.2].map(a => ({ a }))
    expect(aggregate({ aggregates: { sum: { $sum: 'a' } } }, numbers)[0]!.value).to.deep.equal({ sum: 1 })
    const [row] = new Aggregation(parseAggregateQuery({ aggregates: { sum: { $sum: 'a' } } })).rows()
    expect(row).to.equal('{"key":{},"value":{"sum":0}}')
  })

  it('gives the result of a loop, however documents and states are combined', () => {
    const grouped = fc.constantFrom([], ['a'], ['b', 'c\\.d'], ['a.0'])
    const list = fc.array(fc.tuple(document, fc.nat(3)), { maxLength: 12, size: 'max' })
    fc.assert(fc.property(grouped, list, (groupBy, documents) => {
      const aggregates = {
        n: { $count: true }, has: { $count: 'b' }, sum: { $sum: 'b' }, avg: { $avg: 'b' }, min: { $min: 'b' },
        max: { $max: 'b' }, values: { $distinct: 'b' },
      }
      const query = parseAggregateQuery({ group_by: groupBy, aggregates })
      const parts = [0, 1, 2, 3].map(part => {
        const aggregation = new Aggregation(query)
        for (const [each, chosen] of documents) if (chosen === part) aggregation.add(each)
        return aggregation.encode()
      })
      const merged = (states: readonly Uint8Array[]): Aggregation => {
        const aggregation = new Aggregation(query)
        for (const state of states) aggregation.addEncoded(state)
        return aggregation
      }
      const rows = merged(parts).rows()
      expect(merged([...parts].reverse()).rows()).to.deep.equal(rows)
      const [first, second, ...others] = parts
      expect(merged([first!, merged([merged(others).encode(), second!]).encode()]).rows()).to.deep.equal(rows)
      expect(rows.map(row => JSON.parse(row) as Row)).to.deep.equal(naive(groupBy, documents.map(([each]) => each)))
    }), { numRuns: 1000 })
  })

  it('has bounds for groups, values and their sizes', () => {
    const limits = { groupsMax: 3, distinctMax: 3, charactersMax: 1000 }
    const documents = (count: number): unknown[] => Array.from({ length: count }, (_, a) => ({ a }))
    const grouped = { group_by: ['a'], aggregates: { n: { $count: true } } }
    const distinct = { aggregates: { values: { $distinct: 'a' } } }
    for (const request of [grouped, distinct]) {
      expect(aggregate(request, documents(3), limits)).not.to.have.length(0)
      expect(() => aggregate(request, documents(4), limits)).to.throw(ApiError, 'more than 3')
    }
    const long = [{ a: 'x'.repeat(600), b: 'x'.repeat(600) }, { a: 'x'.repeat(600), b: 1 }]
    expect(() => aggregate({ aggregates: { a: { $max: 'a' }, b: { $max: 'b' } } }, long, limits))
      .to.throw(ApiError, 'more than 1000 characters')
    const growing = Array.from({ length: 900 }, (_, length) => ({ a: 'x'.repeat(length) }))
    expect(aggregate({ aggregates: { a: { $max: 'a' } } }, growing, limits)).to.have.length(1)
    const other = new Aggregation(parseAggregateQuery(grouped))
    for (const each of documents(4)) other.add(each)
    const merged = new Aggregation(parseAggregateQuery(grouped), limits)
    expect(() => merged.addEncoded(other.encode())).to.throw(ApiError, 'more than 3 groups')
    expect(defaultAggregateLimits.groupsMax).to.equal(10_000)
  })

  it('names its fields, and refuses other requests', () => {
    const request = { group_by: ['a.b', 'c'], aggregates: { n: { $count: true }, s: { $sum: 'd' }, m: { $min: 'c' } } }
    expect(aggregateFields(parseAggregateQuery(request))).to.deep.equal(['a.b', 'c', 'd'])
    for (const bad of [
      {}, { aggregates: {} }, { aggregates: [] }, { aggregates: { n: {} } }, { aggregates: { n: { $median: 'a' } } },
      { aggregates: { n: { $sum: true } } }, { aggregates: { n: { $count: 'a', $sum: 'a' } } },
      { aggregates: { n: { $sum: 'a..b' } } }, { aggregates: { n: 5 } },
      { aggregates: { n: { $count: true } }, group_by: 'a' }, { aggregates: { n: { $count: true } }, group_by: [1] },
      { aggregates: { n: { $count: true } }, group_by: Array.from({ length: 17 }, (_, at) => `f${at}`) },
    ]) expect(() => parseAggregateQuery(bad), JSON.stringify(bad)).to.throw(ApiError)
  })
})

const encoder = new SortKeyEncoder()

/** Orders by the sort key, then by the JSON. */
function order(a: unknown, b: unknown): number {
  const [left, right] = [encoder.encode(a), encoder.encode(b)]
  const [json, other] = [JSON.stringify(a), JSON.stringify(b)]
  return left < right ? -1 : left > right ? 1 : json < other ? -1 : json > other ? 1 : 0
}

/** Returns the first one of values that have the same sort key. */
function firstOfEqual(sorted: readonly unknown[]): readonly unknown[] {
  return sorted.filter((value, at) => at === 0 || encoder.encode(sorted[at - 1]) !== encoder.encode(value))
}

function naive(groupBy: readonly string[], documents: readonly JsonObject[]): readonly Row[] {
  const at = (each: JsonObject, name: string): readonly unknown[] => {
    const field = fieldAt(each, parseFieldPath(name))
    return field.kind === 'found' ? [field.value] : []
  }
  const keyOf = (each: JsonObject): readonly (readonly unknown[])[] => groupBy.map(name => at(each, name))
  const keys = firstOfEqual(groupBy.length === 0 ? [[]] : documents.map(keyOf).toSorted(order)) as unknown[][][]
  return keys.map(key => {
    const members = documents.filter(each => encoder.encode(keyOf(each)) === encoder.encode(key))
    const values = members.flatMap(each => at(each, 'b'))
    const numbers = values.filter(each => typeof each === 'number')
    const sorted = values.toSorted(order)
    const sum = numbers.reduce((total, each) => total + each, 0)
    const result = {
      n: members.length, has: values.length, sum, avg: numbers.length === 0 ? null : sum / numbers.length,
      min: sorted[0] ?? null, max: sorted.at(-1) ?? null, values: firstOfEqual(sorted),
    }
    const shown = Object.fromEntries(groupBy.flatMap((name, place) => key[place]!.length === 0
      ? []
      : [[name, key[place]![0]]]))
    return JSON.parse(JSON.stringify({ key: shown, value: result })) as Row
  })
}
