import { expect } from 'chai'
import fc from 'fast-check'
import {
  afterKeysWith, afterPrefix, compareJson, jsonDepthMax, SortKeyEncoder, sortKeyBytesMax,
} from '../../src/index.ts'
import type { Collation } from '../../src/index.ts'

const root = new SortKeyEncoder()
const raw = new SortKeyEncoder('raw')

/** Checks that each value is less than all later ones. */
function expectOrder(encoder: SortKeyEncoder, values: readonly unknown[]): void {
  const keys = values.map(value => encoder.encode(value))
  for (let i = 1; i < keys.length; i++) {
    const pair = values.slice(i - 1, i + 1)
    expect(keys[i - 1]! < keys[i]!, pair.map(value => JSON.stringify(value)).join(' < ')).to.equal(true)
  }
}

function sign(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** Numbers, strings and names among which equal ones are frequent. */
const numbers = fc.oneof(fc.constantFrom(0, -0, 1, -1, 1.5, 2 ** 53, 5e-324), fc.double({
  noNaN: true, noDefaultInfinity: true,
}))
const characters = fc.constantFrom('a', 'A', 'b', 'é', 'e\u0301', ' ', '\u0000', '\u0001', '\u{1f600}', '\uffff')
const texts = fc.array(characters, { maxLength: 3 }).map(parts => parts.join(''))
const { value: values } = fc.letrec(tie => ({
  value: fc.oneof({ maxDepth: 4 }, fc.constantFrom(null, true, false), numbers, texts, tie('array'), tie('object')),
  array: fc.array(tie('value'), { maxLength: 3 }),
  object: fc.dictionary(texts.map(name => `_${name}`), tie('value'), { maxKeys: 3 }),
}))

const collator = new Intl.Collator('en-US', { sensitivity: 'variant', ignorePunctuation: false })

describe('sort keys', () => {
  it('order the types, and arrays and objects by their elements and members', () => {
    expectOrder(root, [
      null, false, true, -10, 0, 0.5, 1, 2, '', 'a', 'b', [], [null], ['a'], [[]], {}, { a: null }, { a: 1 }, { b: 0 },
    ])
    expectOrder(root, [
      [], [null], [true], [1], [1, 2], [1, 2, 3], [1, 'z'], [2], ['a'], ['a', null], ['a', 1], ['a', 'a'], ['a', 'b'],
      ['a', 'B'], ['a', []], ['a', {}], ['A'], ['aa'], ['b'], [[1]], [[1], 2],
    ])
    expectOrder(root, [
      {}, { a: null }, { a: 1 }, { a: 1, b: 0 }, { a: 2 }, { a: 2, b: 1 }, { a: 'x' }, { a: [1] }, { a: {} },
      { a: { x: 1 } }, { A: 1 }, { aa: 0 }, { b: null }, { b: 1, a: 2 },
    ])
  })

  it('order numbers by value', () => {
    expectOrder(root, [
      -Number.MAX_VALUE, -1e10, -1.5, -1, -0.001, -5e-324, 0, 5e-324, 0.001, 0.1, 0.2, 0.3, 1, 1.5, 2, 3.14159, 10, 100,
      999.9, 1000, 1e10, 123456789012, 2 ** 53, 2 ** 53 + 2, Number.MAX_VALUE,
    ])
    expect(root.encode(-0)).to.equal(root.encode(0))
    expect(root.encode(JSON.parse('9007199254740993'))).to.equal(root.encode(2 ** 53))
  })

  it('order printable ASCII characters and words as ICU does', () => {
    expectOrder(root, [
      ...' _-,;:!?.\'"()[]{}@*/\\&#%`^+<=>|~$0123456789',
      ...[...'abcdefghijklmnopqrstuvwxyz'].flatMap(letter => [letter, letter.toUpperCase()]),
    ])
    expectOrder(root, [
      '', 'a', 'A', 'aa', 'aA', 'Aa', 'AA', 'ab', 'aB', 'Ab', 'AB', 'apple', 'Apple', 'APPLE', 'apple pie', 'apples',
      'b', 'ba', 'cote', 'Cote', 'coté', 'côte', 'côté', 'cotes', 'strasse', 'straße', 'strasze',
    ])
    expectOrder(root, [
      '001', '01', '1', '\u2460', '1-5', '1,5', '1.5', '\u00bd', '10', '1a', '2', '\uff12', '20', 'a01', 'a1', 'a10',
      'a2',
    ])
  })

  it('order scripts one after the other', () => {
    expectOrder(root, [
      '\u2603', '\u{1f34e}', '\u{1f680}', '$5', '\u20ac5', 'latin', 'Ελλάδα', 'ωμέγα', 'город', 'еда', 'ёлка',
      'Москва', '\u10d0', '\u0540', '\u05ea\u05dc', '\u0627\u0644', '\u0939', '\u0e44', '서울', 'かな', 'カナ', '中文', '日本',
      '漢字',
    ])
    expect(root.encode('\u0661')).to.equal(root.encode('1'))
  })

  it('order raw collation by bytes', () => {
    expectOrder(raw, [
      -5, 0, 2.5, 10, false, null, true, {}, { a: 1 }, [], [1], ['a'], '', '\u0000', '\u0000\u0000', '\u0000\u0001',
      '\u0000a', '\u0001', '\u0002', 'A', 'B', 'a', 'ab', 'b', 'z', '~', 'é', '\uffee', '\u{1f680}',
    ])
  })

  it('order any values as comparing them does', () => {
    const compareTexts: Readonly<Record<Collation, (a: string, b: string) => number>> = {
      root: (a, b) => collator.compare(a, b),
      raw: (a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)),
    }
    fc.assert(fc.property(values, values, (a, b) => {
      const order = Math.sign(compareJson(a, b, compareTexts.root))
      expect(sign(root.encode(a), root.encode(b))).to.equal(order)
    }), { numRuns: 2000 })
    fc.assert(fc.property(texts, texts, (a, b) => {
      expect(sign(raw.encode([a, 1]), raw.encode([b]))).to.equal(compareTexts.raw(a, b) || 1)
    }))
  })

  it('have one character for each byte, and none is the beginning of another one', () => {
    fc.assert(fc.property(values, values, fc.constantFrom(root, raw), (a, b, encoder) => {
      const [left, right] = [encoder.encode(a), encoder.encode(b)]
      expect(left).to.match(/^[\0-\xff]*$/)
      expect(left !== right && right.startsWith(left)).to.equal(false)
    }), { numRuns: 1000 })
  })

  it('do not depend on the keys that the encoder has made before', () => {
    const encoder = new SortKeyEncoder()
    const before = encoder.encode(['a', 1])
    encoder.encode('é'.repeat(100_000))
    expect(() => encoder.encode(['b', undefined])).to.throw(TypeError)
    expect(encoder.encode(['a', 1])).to.equal(before)
  })

  it('refuse values that are too large or too deep, and what JSON cannot contain', () => {
    const nested = (depth: number): unknown => depth === 0 ? [] : [nested(depth - 1)]
    const longest = sortKeyBytesMax - 2
    expect(raw.encode('a'.repeat(longest)).length).to.equal(sortKeyBytesMax)
    for (const encoder of [root, raw]) {
      expect(() => encoder.encode('a'.repeat(longest + 1))).to.throw('longer than')
      expect(() => encoder.encode('\u0000'.repeat(sortKeyBytesMax + 1))).to.throw('longer than')
      expect(encoder.encode(nested(jsonDepthMax - 1)).length).to.equal(2 * jsonDepthMax)
      expect(() => encoder.encode(nested(jsonDepthMax))).to.throw('nested deeper')
      for (const value of [undefined, NaN, Infinity, 1n, [undefined], { a: () => 1 }]) {
        expect(() => encoder.encode(value)).to.throw(TypeError)
      }
    }
  })

  it('have equal group keys if and only if the first elements are equal', () => {
    const arrays = fc.array(values, { maxLength: 4 })
    const levels = fc.integer({ min: 1, max: 4 })
    const encoders = fc.constantFrom(root, raw)
    fc.assert(fc.property(arrays, arrays, levels, fc.boolean(), encoders, (a, b, level, share, encoder) => {
      const other = share ? [...a.slice(0, level), ...b] : b
      const expected = encoder.encode(a.slice(0, level)) === encoder.encode(other.slice(0, level))
      const [left, right] = [encoder.encode(a), encoder.encode(other)]
      expect(encoder.groupKey(left, level) === encoder.groupKey(right, level)).to.equal(expected)
    }), { numRuns: 1000 })
    expect(root.groupKey(root.encode('a'), 1)).to.equal(root.encode('a'))
    expect(root.groupKey(root.encode({ a: 1 }), 1)).to.equal(root.encode({ a: 1 }))
  })

  it('begin with the prefix of each text with which the string begins', () => {
    const contracted = fc.constantFrom(
      'l', 'L', '·', '\u0387', 'и', '\u0306', '\u0301', '\u0327', 'เ', 'ก', 'و', '\u0654', 'ᄀ', 'ᅡ', '가', '\u0fb2',
      '\u0f71', '\u0f80', '\u1b05', '\u1b35', 'я', 'ぐ', 'ー', '😀', ...'aZ é\u0000\u0001\uffff')
    const text = fc.array(contracted, { maxLength: 5 }).map(parts => parts.join(''))
    fc.assert(fc.property(text, text, fc.constantFrom(root, raw), (start, rest, encoder) => {
      const prefix = encoder.encodePrefix(start)
      const key = encoder.encode(start + rest)
      expect(key.startsWith(prefix)).to.equal(true)
      expect(key < afterPrefix(prefix)).to.equal(true)
    }), { numRuns: 5000 })
    expect(root.encode('Help') > afterPrefix(root.encodePrefix('hell'))).to.equal(true)
    expect(root.encode('Россия').startsWith(root.encodePrefix('Росси'))).to.equal(true)
    expect(root.encode('Россы').startsWith(root.encodePrefix('Россия'))).to.equal(false)
  })

  it('have an end of all keys that start with a group key', () => {
    const end = afterKeysWith(root.groupKey(root.encode(['a', 1]), 1))
    for (const key of [['a'], ['a', null], ['a', 'z'], ['a', {}], ['a', { z: {} }, 5]]) {
      expect(`${root.encode(key)}\u00f4document` < end).to.equal(true)
    }
    for (const key of [['A'], ['aa'], ['b'], [[]], {}]) expect(root.encode(key) > end).to.equal(true)
  })
})
