import { expect } from 'chai'
import fc from 'fast-check'
import {
  fieldAt, filterIndexes, type JsonIndex, type JsonObject, matchesSelector, onlyKey, parseFieldPath, parseSelector,
  type PlannedQuery, rateFilters, SortKeyEncoder,
} from '../../src/index.ts'
import { document, fieldNames, selector } from '../selectors/random-selectors.ts'

const encoder = new SortKeyEncoder('root')

function query(written: unknown, options: Partial<PlannedQuery> = {}): PlannedQuery {
  return {
    selector: parseSelector(written), sort: [], fields: null, useIndex: null, allowFallback: true, conflicts: false,
    partition: null, partitioned: false, ...options,
  }
}

function index(...fields: readonly string[]): JsonIndex {
  const name = fields.join()
  return { ddoc: `_design/${name}`, name, fields: fields.map(field => ({ name: field })), partitioned: false }
}

/** Returns a selector of the values that a document has in some fields. */
function valuesOf(each: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(names.flatMap(name => {
    const field = fieldAt(each, parseFieldPath(name))
    return field.kind === 'found' ? [[name, { $eq: field.value }]] : []
  }))
}

describe('an index that filters the rows of another one', () => {
  it('has a row with the same key for each document that matches', () => {
    const columns = fc.uniqueArray(fc.constantFrom(...fieldNames), { minLength: 1, maxLength: 2 })
    const some = fc.array(document, { minLength: 1, maxLength: 5 })
    let found = 0
    fc.assert(fc.property(fc.option(selector), columns, columns, some, (other, chosen, names, documents) => {
      const asked = query(other ?? valuesOf(documents[0]!, [...chosen, ...names]))
      const filters = filterIndexes(asked, index(...chosen), [index(...chosen), index(...names)], encoder)
      for (const { fields } of filters) {
        const key = onlyKey({ selector: asked.selector, fields, partition: null }, encoder)
        for (const each of documents.filter(candidate => matchesSelector(asked.selector, candidate))) {
          const row = fields.map(({ name }) => fieldAt(each, parseFieldPath(name)))
          expect(encoder.encode(row.map(field => field.kind === 'found' ? field.value : expect.fail('no row'))))
            .to.equal(key)
          found++
        }
      }
    }), { numRuns: 3000 })
    expect(found).to.be.greaterThan(30)
  })

  it('limits a field that the ranges of the chosen one do not', () => {
    const [a, b, ab, ba, abc] = [index('a'), index('b'), index('a', 'b'), index('b', 'a'), index('a', 'c', 'b')]
    const filters = (written: unknown, chosen: JsonIndex, options: Partial<PlannedQuery> = {}): readonly JsonIndex[] =>
      filterIndexes(query(written, options), chosen, [a, b, ab, ba, abc], encoder)
    const both = { a: 1, b: 2 }
    expect(filters(both, a)).to.deep.equal([b, ab, ba])
    expect(filters(both, ab)).to.deep.equal([])
    expect(filters({ ...both, c: { $gt: 1 } }, abc)).to.deep.equal([b, ab, ba])
    expect(filters({ a: { $gt: 1 }, b: 2 }, a)).to.deep.equal([b])
    expect(filters({ a: 1, b: { $gt: 2 } }, a)).to.deep.equal([])
    expect(filters({ a: 1, b: { $in: [1, 2] } }, a)).to.deep.equal([])
    expect(filters(both, a, { useIndex: { ddoc: '_design/a' } })).to.deep.equal([])
    const partial: JsonIndex = { ...b, partialFilter: { c: 1 } }
    expect(filterIndexes(query(both), a, [a, partial, { ...b, partitioned: true }], encoder)).to.deep.equal([])
  })

  it('is used when it saves many documents and has few rows', () => {
    const all = { needed: null, savedMin: 100 }
    const chosen = { rows: 1250, all: 100_000 }
    const rated = (...filters: Parameters<typeof rateFilters>[1]): readonly string[] =>
      rateFilters(chosen, filters, all).map(({ verdict }) => verdict)
    expect(rateFilters(chosen, [{ rows: 2000, all: 100_000 }], all))
      .to.deep.equal([{ verdict: 'used', documentsAlone: 1250, documents: 25 }])
    expect(rated({ rows: 2000, all: 100_000 }, { rows: 1000, all: 90_000 })).to.deep.equal(['more_rows', 'used'])
    expect(rated({ rows: 60_000, all: 100_000 }, { rows: 6000, all: 100_000 }, undefined))
      .to.deep.equal(['not_selective', 'many_rows', 'unknown'])
    expect(rateFilters({ rows: 100, all: 100_000 }, [{ rows: 200, all: 100_000 }], all)[0])
      .to.include({ verdict: 'few_documents' })
    expect(rateFilters(undefined, [{ rows: 2000, all: 100_000 }], all)).to.deep.equal([{ verdict: 'unknown' }])
    // The first 25 matches are among the first 250 rows.
    const tenth = { rows: 10_000, all: 100_000 }
    expect(rateFilters({ rows: 100_000, all: 100_000 }, [tenth], { ...all, needed: 25 })[0])
      .to.deep.equal({ verdict: 'many_rows', documentsAlone: 250, documents: 25 })
    expect(rateFilters(chosen, [{ rows: 0, all: 100_000 }], { ...all, needed: 25 })[0])
      .to.deep.equal({ verdict: 'used', documentsAlone: 1250, documents: 0 })
  })
})
