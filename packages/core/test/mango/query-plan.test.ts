import { expect } from 'chai'
import fc from 'fast-check'
import {
  fieldAt, type JsonIndex, type JsonObject, matchesSelector, parseFieldPath, parseFieldPaths, parseSelector,
  type PlannedQuery, planQuery, projectFields, type QueryPlan, rowDocument, selectorFields, SortKeyEncoder,
  tiedIndexes,
} from '../../src/index.ts'
import { document, fieldNames, selector } from '../selectors/random-selectors.ts'

const encoder = new SortKeyEncoder()

function query(written: unknown, options: Partial<PlannedQuery> = {}): PlannedQuery {
  return {
    selector: parseSelector(written), sort: [], fields: null, useIndex: null, allowFallback: true, conflicts: false,
    partition: null, partitioned: false, ...options,
  }
}

function index(name: string, fields: readonly string[], options: Partial<JsonIndex> = {}): JsonIndex {
  const columns = fields.map(field => ({ name: field }))
  return { ddoc: `_design/${name}`, name, fields: columns, partitioned: false, ...options }
}

function plan(asked: PlannedQuery, indexes: readonly JsonIndex[], counts?: readonly number[]): QueryPlan<JsonIndex> {
  const planned = planQuery(asked, indexes, counts && new Map(indexes.map((each, at) => [each, counts[at]!])))
  if (planned.kind === 'no-plan') throw new Error(planned.reason)
  return planned
}

function values(each: JsonObject, names: readonly { readonly name: string }[]): readonly unknown[] | null {
  const found = names.map(({ name }) => fieldAt(each, parseFieldPath(name)))
  return found.every(field => field.kind === 'found') ? found.map(field => field.value) : null
}

const names = fc.uniqueArray(fc.constantFrom(...fieldNames), { minLength: 1, maxLength: 3 })
const sort = fc.uniqueArray(fc.constantFrom(...fieldNames), { maxLength: 2 })
  .map(fields => fields.map(name => ({ name, direction: 'asc' as const })))

describe('a plan', () => {
  it('reads an index only when it has all matching documents in the order that is asked for', () => {
    const documents = fc.array(document, { minLength: 2, maxLength: 6 })
    let used = 0
    fc.assert(fc.property(selector, sort, fc.array(names, { minLength: 1, maxLength: 4 }), documents,
      (written, sorted, columns, all) => {
        const asked = query(written, { sort: sorted })
        const planned = planQuery(asked, columns.map((fields, at) => index(`i${at}`, fields)))
        if (planned.kind === 'no-plan' || planned.index === null) return
        used++
        const { fields } = planned.index
        const matching = all.filter(each => matchesSelector(asked.selector, each))
          .filter(each => values(each, sorted) !== null)
        for (const each of matching) expect(values(each, fields), JSON.stringify(each)).not.to.equal(null)
        const rows = matching.toSorted((a, b) =>
          encoder.encode(values(a, fields)) < encoder.encode(values(b, fields)) ? -1 : 1)
        const keys = rows.map(each => encoder.encode(values(each, sorted)))
        expect(keys).to.deep.equal(keys.toSorted())
      }), { numRuns: 1000 })
    expect(used).to.be.greaterThan(100)
  })

  it('reads an index for a sort only if the sort follows leading columns with one value', () => {
    const serves = (columns: readonly string[], sorted: readonly string[]): boolean => {
      const asked = query({ a: 1, b: { $eq: 2 }, c: { $gt: 0 }, d: { $in: [1] } }, {
        sort: sorted.map(name => ({ name, direction: 'desc' })),
      })
      return planQuery(asked, [index('i', columns)]).kind === 'plan'
    }
    for (const names of ['a b c', 'b', 'b c', 'c', 'a', 'a b']) {
      expect(serves(['a', 'b', 'c'], names.split(' ')), names).to.equal(true)
    }
    expect(serves(['a', 'b', 'c'], ['a', 'c'])).to.equal(false)
    expect(serves(['c'], ['a'])).to.equal(false)
    expect(serves(['c'], ['c', 'a'])).to.equal(false)
    expect(serves(['c', 'a'], ['a'])).to.equal(false)
    expect(serves(['d', 'c'], ['c'])).to.equal(false)
  })

  it('reads an index of conflicts only for a query that sees them', () => {
    const byConflicts = index('c', ['a', '_conflicts'])
    const asked = { a: 1, _conflicts: { $exists: true } }
    expect(plan(query(asked, { conflicts: true }), [byConflicts]).index).to.equal(byConflicts)
    const unseen = plan(query(asked, { fields: ['_conflicts'] }), [byConflicts])
    expect([unseen.index, unseen.covering]).to.deep.equal([null, false])
  })

  it('suggests an index with which the query no longer reads all documents', () => {
    fc.assert(fc.property(selector, sort, fc.boolean(), (written, sorted, allowFallback) => {
      const asked = query(written, { sort: sorted, allowFallback })
      const { suggestion } = planQuery(asked, [])
      if (suggestion === null) return
      const suggested = index('new', suggestion.index.fields)
      expect(plan(asked, [suggested]).index).to.equal(suggested)
    }), { numRuns: 1000 })
  })

  it('suggests the fields with one value first, then those of the sort', () => {
    const suggestion = (written: unknown, options: Partial<PlannedQuery> = {}): unknown =>
      planQuery(query(written, options), []).suggestion
    const byYear = [{ name: 'year', direction: 'desc' as const }]
    expect(suggestion({ year: { $gt: 1950 }, genre: 'drama' }))
      .to.deep.equal({ index: { fields: ['genre', 'year'] }, type: 'json' })
    expect(suggestion({ votes: { $gt: 5 }, genre: 'drama' }, { sort: byYear }))
      .to.deep.equal({ index: { fields: ['genre', 'year'] }, type: 'json' })
    expect(suggestion({ title: { $regex: 'x' } })).to.deep.equal({ index: { fields: ['title'] }, type: 'json' })
    expect(suggestion({ genre: 'drama' }, { partitioned: true }))
      .to.deep.equal({ index: { fields: ['genre'] }, type: 'json', partitioned: false })
    expect(suggestion({ genre: 'drama' }, { partitioned: true, partition: 'p' }))
      .to.deep.equal({ index: { fields: ['genre'] }, type: 'json' })
    for (const none of [{}, { _id: 'a' }, { $or: [{ a: 1 }, { b: 1 }] }, { a: { $exists: false } }]) {
      expect(suggestion(none)).to.equal(null)
    }
  })

  it('prefers few fields outside of the prefix, then few rows, then few columns, then the name', () => {
    const [genre, year, both] = [index('g', ['genre']), index('y', ['year']), index('b', ['genre', 'year'])]
    const asked = query({ genre: 'drama', year: 1984 })
    expect(plan(asked, [genre, both]).index).to.equal(both)
    expect(plan(asked, [year, genre]).index).to.equal(genre)
    expect(tiedIndexes(asked, [year, genre])).to.have.members([year, genre])
    expect(tiedIndexes(asked, [year, genre, both])).to.deep.equal([])
    const counted = plan(asked, [year, genre], [10, 20])
    expect(counted.index).to.equal(year)
    expect(counted.rejected.map(({ reason }) => reason)).to.deep.equal(['more_rows', 'unfavored_type'])
    expect(plan(asked, [genre, both], [1, 100]).index).to.equal(both)
    const wide = index('a', ['genre', '_id'])
    const [other] = plan(query({ genre: 'drama' }), [wide, genre]).rejected
    expect(other).to.deep.include({ index: wide, reason: 'too_many_fields', usable: true, ranking: 1 })
  })

  it('compares the rows of few indexes only', () => {
    const indexes = Array.from({ length: 20 }, (_, at) => index(`i${at + 10}`, ['genre']))
    const asked = query({ genre: 'drama' })
    const tied = tiedIndexes(asked, indexes)
    expect(tied).to.deep.equal(indexes.slice(0, 8))
    const counts = new Map(tied.map((each, at) => [each, 100 - at]))
    expect(planQuery(asked, indexes, counts)).to.have.property('index', tied[7])
  })

  it('keeps to the index that the query names, if it can be used', () => {
    const [genre, both] = [index('g', ['genre']), index('b', ['genre', 'year'])]
    const partial = index('p', ['genre'], { partialFilter: { year: { $gt: 1950 } } })
    const asked = query({ genre: 'drama', year: 1984 }, { useIndex: { ddoc: '_design/g' } })
    const named = plan(asked, [genre, both, partial])
    expect(named).to.deep.include({ index: genre, unused: null })
    expect(named.rejected.map(({ index: each, reason }) => [each?.name, reason])).to.deep.equal([
      ['b', 'excluded_by_user'], ['p', 'is_partial'], [undefined, 'unfavored_type'],
    ])
    expect(tiedIndexes(asked, [genre, both])).to.deep.equal([])
    const ofPartial = { ...asked, useIndex: { ddoc: '_design/p', name: 'p' } }
    expect(plan(ofPartial, [genre, both, partial]).index).to.equal(partial)
    const unknown = { ...asked, useIndex: { ddoc: '_design/g', name: 'x' } }
    expect(plan(unknown, [genre, both])).to.deep.include({ index: both, unused: unknown.useIndex })
    expect(planQuery({ ...unknown, allowFallback: false }, [genre]).kind).to.equal('no-plan')
  })

  it('covers a query only when a row has the answer of its document', () => {
    let covered = 0
    fc.assert(fc.property(selector, fc.boolean(), fc.array(document, { maxLength: 5 }), (written, isReversed, all) => {
      const shown = [...selectorFields(parseSelector(written)).all]
      const columns = isReversed ? shown.toReversed() : shown
      const asked = query(written, { fields: shown })
      const planned = planQuery(asked, [index('i', columns)])
      if (planned.kind === 'no-plan' || !planned.covering) return
      for (const each of all) {
        const row = values(each, planned.index!.fields)
        if (row === null) continue
        covered++
        const seen = rowDocument(each['_id'] as string, parseFieldPaths(columns), row)
        expect(matchesSelector(asked.selector, seen)).to.equal(matchesSelector(asked.selector, each))
        const paths = parseFieldPaths(shown)
        expect(projectFields(seen, paths)).to.deep.equal(projectFields(each, paths))
      }
    }), { numRuns: 2000 })
    expect(covered).to.be.greaterThan(100)
  })

  it('covers a query when the rows have all fields of the selector and of the answer', () => {
    const both = index('b', ['genre', 'year'])
    const covering = (written: unknown, options: Partial<PlannedQuery>): boolean =>
      plan(query(written, options), [both]).covering
    const conditions = { genre: 'drama', year: { $gt: 1950 } }
    expect(covering(conditions, { fields: ['_id', 'year'] })).to.equal(true)
    expect(covering(conditions, { fields: null })).to.equal(false)
    expect(covering(conditions, { fields: ['_id'], conflicts: true })).to.equal(false)
    expect(covering({ ...conditions, votes: 5 }, { fields: ['_id'] })).to.equal(false)
    expect(covering(conditions, { fields: ['_rev'] })).to.equal(false)
  })
})
