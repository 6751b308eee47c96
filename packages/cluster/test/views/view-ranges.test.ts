import { expect } from 'chai'
import fc from 'fast-check'
import { partitionPrefix, SortKeyEncoder } from '@sectional/core'
import type { Collation, RowRange } from '@sectional/core'
import { viewRanges } from '../../src/views/view-ranges.ts'
import type { ViewRangeOptions } from '../../src/views/view-ranges.ts'

interface Row { readonly key: unknown; readonly id: string; readonly partition?: string }

/** The keys of the tests in the order of the two collations, written by hand. */
const keysByCollation: Readonly<Record<Collation, readonly unknown[]>> = {
  root: [null, false, 1, 2, 'a', 'A', 'b', ['x'], ['x', {}], { a: 1 }],
  raw: [1, 2, false, null, { a: 1 }, ['x'], ['x', {}], 'A', 'a', 'b'],
}

const ids = ['d1', 'd2', 'd3']
const plain: ViewRangeOptions = { inclusiveEnd: true, descending: false }

/** Returns the rows of all ranges in the order of the answer, by the definition of `RowRange`. */
function select(
  rows: readonly Row[], ranges: readonly RowRange[], encoder: SortKeyEncoder, descending = false,
): readonly Row[] {
  const encoded = rows.map(row => ({
    row, key: (row.partition === undefined ? '' : partitionPrefix(row.partition)) + encoder.encode(row.key),
  }))
  const ordered = encoded.toSorted((a, b) => a.key < b.key ? -1 : a.key > b.key ? 1 : a.row.id < b.row.id ? -1 : 1)
  return ranges.flatMap(({ lower, upper }) => {
    const found = ordered.filter(({ key, row: { id } }) => {
      const side = (bound: RowRange['lower']): number => bound === undefined ? 0
        : key !== bound.key ? (key < bound.key ? -1 : 1)
        : bound.id === undefined || id === bound.id ? (bound.inclusive ? 0 : NaN) : id < bound.id ? -1 : 1
      return (lower === undefined || side(lower) >= 0) && (upper === undefined || side(upper) <= 0)
    })
    return (descending ? found.toReversed() : found).map(({ row }) => row)
  })
}

const names = (rows: readonly Row[]): readonly string[] => rows.map(({ key, id }) => `${JSON.stringify(key)} ${id}`)

describe('the ranges of a view query', () => {
  for (const collation of ['root', 'raw'] as const) {
    const keys = keysByCollation[collation]
    const rows = keys.flatMap(key => ids.map((id): Row => ({ key, id })))
    const encoder = new SortKeyEncoder(collation)
    const query = (options: Partial<ViewRangeOptions>): readonly string[] => {
      const all = { ...plain, ...options }
      return names(select(rows.toReversed(), viewRanges(all, encoder), encoder, all.descending))
    }

    it(`select what a position in the list of rows says, in the collation ${collation}`, () => fc.assert(fc.property(
      fc.option(fc.nat(keys.length - 1), { nil: undefined }), fc.option(fc.nat(keys.length - 1), { nil: undefined }),
      fc.option(fc.constantFrom('', ...ids, 'd2x'), { nil: undefined }),
      fc.option(fc.constantFrom('', ...ids, 'd2x'), { nil: undefined }), fc.boolean(), fc.boolean(),
      (start, end, startDocument, endDocument, inclusiveEnd, descending) => {
        fc.pre(descending || start === undefined || end === undefined || start <= end)
        const sign = descending ? -1 : 1
        const byId = (id: string, bound: string): number => (id < bound ? -1 : id > bound ? 1 : 0) * sign
        const listed = descending ? rows.toReversed() : rows
        const expected = listed.filter(({ key, id }) => {
          const at = keys.indexOf(key)
          if (start !== undefined) {
            if ((at - start) * sign < 0) return false
            if (at === start && startDocument !== undefined && byId(id, startDocument) < 0) return false
          }
          if (end === undefined || (at - end) * sign < 0) return true
          if (at !== end) return false
          if (endDocument === undefined) return inclusiveEnd
          return inclusiveEnd ? byId(id, endDocument) <= 0 : byId(id, endDocument) < 0
        })
        const keyAt = (index: number | undefined): unknown => index === undefined ? undefined : keys[index]
        const options = { startKey: keyAt(start), endKey: keyAt(end), startDocument, endDocument }
        expect(query({ ...options, inclusiveEnd, descending })).to.deep.equal(names(expected))
      },
    )))
  }

  const encoder = new SortKeyEncoder()
  const rows = ['a', 'b', 'c', null].flatMap(key => ['d1', 'd2'].map((id): Row => ({ key, id })))
  const query = (options: Partial<ViewRangeOptions>): readonly string[] => {
    const all = { ...plain, ...options }
    return names(select(rows, viewRanges(all, encoder), encoder, all.descending))
  }

  it('treat one key like an equal start and end key, with the ids of documents', () => {
    expect(query({ key: 'b' })).to.deep.equal(['"b" d1', '"b" d2'])
    expect(query({ key: 'b', startDocument: 'd2' })).to.deep.equal(['"b" d2'])
    expect(query({ key: 'b', endDocument: 'd1' })).to.deep.equal(['"b" d1'])
    expect(query({ key: 'b', inclusiveEnd: false })).to.deep.equal([])
    expect(query({ key: 'b', descending: true, startDocument: 'd1' })).to.deep.equal(['"b" d1'])
  })

  it('distinguish the key null from an absent key', () => {
    expect(query({ key: null })).to.deep.equal(['null d1', 'null d2'])
    expect(query({ endKey: null })).to.deep.equal(['null d1', 'null d2'])
    expect(query({})).to.have.length(8)
  })

  it('follow the order of several keys, repeat repeated keys, and reverse the list when descending', () => {
    const keys = ['c', 'a', 'c']
    expect(query({ keys, endDocument: 'd1' })).to.deep.equal(['"c" d1', '"a" d1', '"c" d1'])
    expect(query({ keys: ['c', 'a'], descending: true })).to.deep.equal(['"a" d2', '"a" d1', '"c" d2', '"c" d1'])
    expect(query({ keys: [] })).to.deep.equal([])
  })

  it('ignore the id of a document without its key', () => {
    expect(query({ startDocument: 'd2', endDocument: 'd0' })).to.have.length(8)
  })

  it('are refused when an ascending range is the wrong way round, and empty when a descending one is', () => {
    expect(() => query({ startKey: 'b', endKey: 'a' })).to.throw(/No rows can match your key range, reverse/)
      .with.property('error', 'query_parse_error')
    expect(query({ startKey: 'a', endKey: 'b', descending: true })).to.deep.equal([])
    // The collation regards these two strings as equal, so that the range is not the wrong way round.
    expect(query({ startKey: 'e\u0301', endKey: '\u00e9' })).to.deep.equal([])
  })

  it('keep to a partition, also next to names that begin alike or that the collation regards as equal', () => {
    const partitions = ['p', 'pp', 'P', 'p\u0001', 'e\u0301', '\u00e9']
    const mixed = partitions.flatMap(partition => ['a', 'b', { z: 1 }].map((key): Row =>
      ({ key, id: `${partition}:1`, partition })))
    for (const partition of partitions) {
      for (const descending of [false, true]) {
        const listed = (options: Partial<ViewRangeOptions>): readonly string[] =>
          names(select(mixed, viewRanges({ ...plain, descending, partition, ...options }, encoder), encoder))
        const id = `${partition}:1`
        expect(listed({})).to.deep.equal([`"a" ${id}`, `"b" ${id}`, `{"z":1} ${id}`])
        expect(listed(descending ? { endKey: 'b' } : { startKey: 'b' })).to.deep.equal([`"b" ${id}`, `{"z":1} ${id}`])
        expect(listed(descending ? { startKey: 'a' } : { endKey: 'a' })).to.deep.equal([`"a" ${id}`])
        expect(listed({ keys: ['b'] })).to.deep.equal([`"b" ${id}`])
      }
    }
  })
})
