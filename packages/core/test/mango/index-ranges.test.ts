import { expect } from 'chai'
import fc from 'fast-check'
import {
  compareJson, compareUtf8, decodeBookmark, encodeBookmark, fieldAt, hasExactRanges, type IdBound, idBounds,
  indexRanges, matchesSelector, parseFieldPath, parseSelector, partitionPrefix, placeInScan, type RowRange,
  type Selector, SortKeyEncoder,
} from '../../src/index.ts'
import { document, fieldNames, selector, value } from '../selectors/random-selectors.ts'

const encoder = new SortKeyEncoder('root')

function isIn({ lower, upper }: RowRange, key: string): boolean {
  return (lower === undefined || (lower.inclusive ? key >= lower.key : key > lower.key))
    && (upper === undefined || (upper.inclusive ? key <= upper.key : key < upper.key))
}

function ranges(selector: unknown, names: readonly string[], descending = false): readonly RowRange[] {
  const fields = names.map(name => ({ name }))
  return indexRanges({ selector: parseSelector(selector), fields, partition: null, descending }, encoder)
}

/** The values of one column that a selector selects, of a list. */
function selected(selector: unknown, values: readonly unknown[]): readonly unknown[] {
  const found = ranges(selector, ['a'])
  return values.filter(each => found.some(range => isIn(range, encoder.encode([each]))))
}

describe('ranges of an index', () => {
  it('have the rows of all matching documents, in disjoint ranges', () => {
    const columns = fc.uniqueArray(fc.constantFrom(...fieldNames), { minLength: 1, maxLength: 3 })
    fc.assert(fc.property(selector, columns, fc.array(document, { minLength: 1, maxLength: 5 }), fc.boolean(),
      (written, names, documents, isDescending) => {
        const found = ranges(written, names, isDescending)
        const parsed = parseSelector(written)
        for (const each of documents) {
          const values = names.map(name => fieldAt(each, parseFieldPath(name)))
          if (!values.every(field => field.kind === 'found')) continue
          if (!matchesSelector(parsed, each)) continue
          const key = encoder.encode(values.map(field => field.value))
          expect(found.filter(range => isIn(range, key))).to.have.length(1)
        }
        const keys = found.map(({ lower }) => lower!.key)
        expect(keys).to.deep.equal(isDescending ? keys.toSorted().toReversed() : keys.toSorted())
      }), { numRuns: 3000 })
  })

  it('are exact only if each document with a row in them matches', () => {
    const columns = fc.uniqueArray(fc.constantFrom(...fieldNames), { minLength: 1, maxLength: 3 })
    const comparison = fc.tuple(fc.constantFrom('$eq', '$eq', '$gt', '$lte', '$exists'), value)
      .map(([operator, argument]) => ({ [operator]: operator === '$exists' ? true : argument }))
    const conjunction = fc.dictionary(fc.constantFrom(...fieldNames), comparison, { maxKeys: 2 })
    let exact = 0
    fc.assert(fc.property(fc.oneof(selector, conjunction), columns, fc.array(document, { minLength: 1, maxLength: 5 }),
      (written, names, documents) => {
        const parsed = parseSelector(written)
        if (!hasExactRanges(parsed, names.map(name => ({ name })), encoder)) return
        exact++
        const found = ranges(written, names)
        for (const each of documents) {
          const values = names.map(name => fieldAt(each, parseFieldPath(name)))
          if (!values.every(field => field.kind === 'found')) continue
          const key = encoder.encode(values.map(field => field.value))
          const isSelected = found.some(range => isIn(range, key))
          expect(matchesSelector(parsed, each), JSON.stringify([written, names, each])).to.equal(isSelected)
        }
      }), { numRuns: 3000 })
    expect(exact).to.be.above(300)
  })

  it('are exact for comparisons of the columns up to the first one with several values', () => {
    const isExact = (written: unknown, names: readonly string[]): boolean =>
      hasExactRanges(parseSelector(written), names.map(name => ({ name })), encoder)
    for (const [written, names] of [
      [{ a: 1 }, ['a']], [{ a: { $gt: 1, $lte: 'x' } }, ['a']], [{ a: 1, b: { $lt: 5 } }, ['a', 'b']],
      [{ a: 1, b: { $exists: true } }, ['a', 'b']], [{}, ['a']], [{ a: 1 }, ['a', 'b']],
    ] as const) expect(isExact(written, names), JSON.stringify(written)).to.equal(true)
    for (const [written, names] of [
      [{ a: 1, b: 2 }, ['a']], [{ a: { $gt: 1 }, b: 2 }, ['a', 'b']], [{ b: 2 }, ['a', 'b']],
      [{ a: { $ne: 1 } }, ['a']], [{ a: { $in: [1] } }, ['a']], [{ $or: [{ a: 1 }, { a: 2 }] }, ['a']],
      [{ a: { $beginsWith: 'x' } }, ['a']], [{ _id: 'x' }, ['_id']], [{ a: { $exists: false } }, ['a']],
    ] as const) expect(isExact(written, names), JSON.stringify(written)).to.equal(false)
  })

  it('are as narrow as comparisons of the first columns allow', () => {
    const values = [null, false, 1, 2, 3, 'A', 'a', 'ab', 'b', [1], [2], { a: 1 }]
    expect(selected({ a: 2 }, values)).to.deep.equal([2])
    expect(selected({ a: { $gt: 1, $lte: 3 } }, values)).to.deep.equal([2, 3])
    expect(selected({ a: { $lt: 2 } }, values)).to.deep.equal([null, false, 1])
    expect(selected({ a: { $gte: 'b' } }, values)).to.deep.equal(['b', [1], [2], { a: 1 }])
    expect(selected({ a: { $beginsWith: 'a' } }, values)).to.deep.equal(['A', 'a', 'ab'])
    expect(selected({ a: { $in: [1, 'b'] } }, values)).to.deep.equal([1, 'b', [1], [2]])
    expect(selected({ $or: [{ a: 1 }, { a: { $gte: {} } }] }, values)).to.deep.equal([1, { a: 1 }])
    expect(selected({ $or: [{ a: 1 }, { b: 1 }] }, values)).to.deep.equal(values)
    expect(selected({ a: { $regex: 'x' } }, values)).to.deep.equal(['A', 'a', 'ab', 'b'])
    expect(selected({ a: { $size: 1 } }, values)).to.deep.equal([[1], [2]])
    expect(selected({ a: { $exists: true } }, values)).to.deep.equal(values)
    const [range] = ranges({ a: 1, b: { $gt: 1 }, c: 5 }, ['a', 'b', 'c'])
    expect([[1, 1, 5], [1, 2, 5], [1, 2, 6], [2, 2, 5]].map(key => isIn(range!, encoder.encode(key))))
      .to.deep.equal([false, true, true, false])
  })

  it('do not use comparisons of ids, which are by bytes, other than by equality', () => {
    const [range] = ranges({ _id: { $gt: 'A' } }, ['_id'])
    expect(['A', 'a', 'b'].map(id => isIn(range!, encoder.encode([id])))).to.deep.equal([true, true, true])
    const [only] = ranges({ _id: 'b' }, ['_id'])
    expect(['A', 'a', 'b'].map(id => isIn(only!, encoder.encode([id])))).to.deep.equal([false, false, true])
  })

  it('are none when the conditions contradict one another', () => {
    for (const written of [
      { a: { $gt: 9, $lt: 3 } }, { a: 1, $and: [{ a: 2 }] }, { a: { $gt: 1, $lt: 1 } }, { a: { $in: [] } },
      { a: { $exists: false } }, { a: { $lt: null } }, { a: 'x', b: { $eq: 1, $lt: 1 } },
      { $or: [] }, { $and: [] }, { $nor: [] },
    ]) expect(ranges(written, ['a', 'b']), JSON.stringify(written)).to.deep.equal([])
  })

  it('are within the partition', () => {
    const scan = { selector: parseSelector({ a: { $gte: 2 } }), fields: [{ name: 'a' }], descending: false }
    const [range, ...others] = indexRanges({ ...scan, partition: 'p' }, encoder)
    expect(others).to.have.length(0)
    const key = (partition: string, a: unknown): string => partitionPrefix(partition) + encoder.encode([a])
    expect([key('p', 1), key('p', 2), key('p', {}), key('q', 2), key('o', 3)].map(each => isIn(range!, each)))
      .to.deep.equal([false, true, true, false, false])
  })

  it('stay few and short for large selectors', () => {
    const many = Array.from({ length: 5000 }, (_, number) => number)
    expect(ranges({ a: { $in: many } }, ['a'])).to.have.length(1)
    expect(ranges({ $or: many.map(a => ({ a })) }, ['a'])).to.have.length(1)
    expect(ranges({ a: 'x'.repeat(2_000_000) }, ['a'])).to.have.length(1)
  })
})

describe('places in a scan', () => {
  it('continue a scan behind a row, also when the row is outside of its ranges', () => {
    const keys = fc.array(value, { minLength: 1, maxLength: 1 })
    const written = fc.constantFrom({ a: { $in: [1, 2, 'a'] } }, { a: { $gte: 1, $lt: 'b' } }, { a: { $exists: true } })
    fc.assert(fc.property(written, keys, fc.array(keys, { maxLength: 8 }), fc.boolean(),
      (selector, position, rows, descending) => {
        const scanned = ranges(selector, ['a'], descending)
        const place = placeInScan({ key: position, id: 'm' }, { ranges: scanned, partition: null, descending }, encoder)
        for (const row of rows) {
          const key = encoder.encode(row)
          const range = scanned.findIndex(each => isIn(each, key))
          if (range === -1) continue
          const behind = encoder.encode(position) < key !== descending && encoder.encode(position) !== key
          const isLater = place !== null
            && (range > place.range || (range === place.range && (descending ? key < place.key : key > place.key)))
          expect(isLater).to.equal(behind)
        }
      }), { numRuns: 1000 })
  })
})

describe('bounds of ids', () => {
  const ids = ['', 'A', 'a', 'ab', 'b', 'é', '\ue000', '\uffff', '\u{10000}', '\u{10ffff}x']

  function inBounds(id: string, bounds: { readonly start?: IdBound; readonly end?: IdBound }): boolean {
    const { start, end } = bounds
    const after = start === undefined ? 1 : compareUtf8(id, start.id)
    const before = end === undefined ? 1 : compareUtf8(end.id, id)
    return (after > 0 || (after === 0 && start!.inclusive)) && (before > 0 || (before === 0 && end!.inclusive))
  }

  function found(selector: unknown): readonly string[] {
    const bounds = idBounds(parseSelector(selector), null, false)
    return bounds === null ? [] : ids.filter(id => inBounds(id, bounds))
  }

  it('contain the ids of all matching documents', () => {
    fc.assert(fc.property(selector, document, (written, each) => {
      const parsed: Selector = parseSelector(written)
      if (!matchesSelector(parsed, each)) return
      const bounds = idBounds(parsed, null, false)
      expect(bounds !== null && inBounds(each['_id'] as string, bounds)).to.equal(true)
    }), { numRuns: 3000 })
  })

  it('are those of the conditions on the id', () => {
    expect(found({ _id: 'a' })).to.deep.equal(['a'])
    expect(found({ _id: { $gt: 'a', $lt: 'b' } })).to.deep.equal(['ab'])
    expect(found({ _id: { $gte: 'a' }, n: 1 })).to.deep.equal(ids.slice(2))
    expect(found({ _id: { $gt: null } })).to.deep.equal(ids)
    expect(found({ _id: { $gt: {} } })).to.deep.equal(ids)
    expect(found({ _id: { $beginsWith: 'a' } })).to.deep.equal(['a', 'ab'])
    expect(found({ _id: { $beginsWith: '\u{10ffff}' } })).to.deep.equal(['\u{10ffff}x'])
    expect(found({ _id: { $in: ['a', 'b', 5] } })).to.deep.equal(['a', 'ab', 'b'])
    expect(found({ $or: [{ _id: 'a' }, { _id: 'b' }] })).to.deep.equal(['a', 'ab', 'b'])
    for (const none of [
      { _id: 5 }, { _id: { $lt: 5 } }, { _id: { $lte: [] } }, { _id: { $gt: 'b', $lt: 'a' } }, { _id: { $size: 1 } },
      { $or: [] }, { $and: [] }, { _id: { $and: [] } },
    ]) {
      expect(idBounds(parseSelector(none), null, false)).to.equal(null)
    }
  })

  it('are within the partition, and exchanged in a descending scan', () => {
    expect(idBounds(parseSelector({ _id: { $gt: 'p:5' } }), 'p', true)).to.deep.equal({
      start: { id: 'p;', inclusive: false }, end: { id: 'p:5', inclusive: false },
    })
    expect(idBounds(parseSelector({ _id: 'q:1' }), 'p', false)).to.equal(null)
  })
})

describe('bookmarks', () => {
  it('are read as they were written', () => {
    const position = fc.record(
      { id: fc.string({ unit: 'grapheme' }), key: fc.array(value, { maxLength: 3 }) }, { requiredKeys: ['id'] })
    fc.assert(fc.property(position, written => {
      const read = decodeBookmark(encodeBookmark(written))!
      expect(read.id).to.equal(written.id)
      expect(compareJson(read.key ?? null, written.key ?? null, compareUtf8)).to.equal(0)
    }))
  })

  it('are refused when they are not of this version', () => {
    const encoded = (parts: unknown): string => Buffer.from(JSON.stringify(parts)).toString('base64url')
    for (const bad of [
      '', 'nil', 'x', '%', 'g1AAAA', encoded({}), encoded(['2', 'a']), encoded(['1']), encoded(['1', 5]),
      encoded(['1', 'a', 5]), encoded(['1', 'a', [], 1]),
      `${encodeBookmark({ id: 'a' })}=`, encoded(['1', 'a']).slice(1),
    ]) expect(decodeBookmark(bad), bad).to.equal(null)
  })
})
