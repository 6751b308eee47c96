import { expect } from 'chai'
import fc from 'fast-check'
import {
  compareJson, compareStringBytes, compileSelector, formatFieldPath, matchesSelector, parseFieldPath, parseFieldPaths,
  parseSelector, projectFields, SelectorError,
} from '../../src/index.ts'

const document = {
  _id: 'd', _rev: '1-a', n: 3, zero: 0, text: 'Hello', nothing: null, yes: true, list: [1, 'b', { c: 2 }], empty: [],
  inner: { a: 1, 'x.y': 2 }, none: {}, nested: [[1], {}],
  people: [{ name: 'a', age: 1 }, { name: 'b' }],
}

/** Whether `document` matches, by both implementations. */
function matches(selector: unknown): boolean {
  const parsed = parseSelector(selector)
  const compiled = compileSelector(parsed)(document)
  expect(matchesSelector(parsed, document), JSON.stringify(selector)).to.equal(compiled)
  return compiled
}

/** Tests that `document` matches each selector of `yes` and none of `no`. */
function table(name: string, { yes, no }: { readonly yes: readonly unknown[]; readonly no: readonly unknown[] }): void {
  it(name, () => {
    for (const selector of yes) expect(matches(selector), JSON.stringify(selector)).to.equal(true)
    for (const selector of no) expect(matches(selector), JSON.stringify(selector)).to.equal(false)
  })
}

describe('selectors', () => {
  table('compare by the order of JSON values, and never match a missing field', {
    yes: [
      { n: 3 }, { n: { $eq: 3.0 } }, { n: { $gt: 2, $lte: 3 } }, { n: { $lt: 'a' } }, { text: { $gt: 99 } },
      { list: { $gt: 'z' } }, { nothing: { $lt: false } }, { n: { $ne: 4 } }, { none: {} },
    ],
    no: [
      { n: 4 }, { n: { $gt: 3 } }, { absent: { $ne: 1 } }, { absent: { $lt: 5 } }, { absent: null }, { inner: {} },
      { text: 'hello' },
    ],
  })
  table('join nested objects and dotted names', {
    yes: [
      { 'inner.a': 1 }, { inner: { a: 1 } }, { 'inner.x\\.y': 2 }, { 'list.2.c': 2 },
      { inner: { a: { $gt: 0 }, 'x\\.y': 2 } }, { inner: { $or: [{ a: 5 }, { a: 1 }] } },
    ],
    no: [{ 'inner.a': 2 }, { 'inner.x.y': 2 }, { 'list.3.c': 2 }],
  })
  table('know what exists', {
    yes: [
      { n: { $exists: true } }, { absent: { $exists: false } }, { 'inner.b': { $exists: false } },
      { 'none.a.b': { $exists: false } }, { nothing: { $exists: true } },
    ],
    no: [
      { n: { $exists: false } }, { absent: { $exists: true } }, { 'n.a': { $exists: false } },
      { 'list.9': { $exists: false } },
    ],
  })
  table('look into arrays', {
    yes: [
      { n: { $in: [1, 3] } }, { list: { $in: ['b'] } }, { list: { $nin: ['z'] } }, { n: { $nin: [] } },
      { list: { $all: [1, 'b'] } }, { list: { $all: [[1, 'b', { c: 2 }]] } },
      { list: { $size: 3 } }, { empty: { $size: 0 } }, { list: { $elemMatch: { c: 2 } } },
      { list: { $elemMatch: { $gt: 'a' } } }, { list: { $allMatch: { $gte: 1 } } }, { 'list.2': { $in: [{ c: 2 }] } },
      { list: { $in: [{ c: 2 }] } }, { list: { $nin: [[1, 'b', { c: 2 }]] } }, { nested: { $in: [[1]] } },
      { nested: { $elemMatch: {} } }, { nested: { $not: { $allMatch: {} } } },
    ],
    no: [
      { n: { $in: [] } }, { list: { $nin: ['b'] } }, { absent: { $nin: [1] } }, { list: { $all: [] } },
      { list: { $all: [1, 9] } }, { text: { $size: 5 } },
      { inner: { $elemMatch: { a: 1 } } }, { list: { $elemMatch: { c: 3 } } }, { empty: { $allMatch: { $gt: 0 } } },
      { list: { $allMatch: { $gt: 1 } } }, { list: { $in: [[1, 'b', { c: 2 }]] } }, { empty: { $in: [[]] } },
      { nested: { $nin: [[1]] } }, { list: { $elemMatch: {} } },
    ],
  })
  table('test types, remainders, patterns, prefixes and keys', {
    yes: [
      { nothing: { $type: 'null' } }, { yes: { $type: 'boolean' } }, { n: { $type: 'number' } },
      { list: { $type: 'array' } }, { inner: { $type: 'object' } },
      { n: { $mod: [2, 1] } }, { n: { $mod: [-2, 1] } }, { text: { $regex: 'ell' } },
      { text: { $regex: '(?i)^HELLO$' } }, { text: { $beginsWith: 'He' } }, { _id: { $beginsWith: 'd' } },
      { inner: { $keyMapMatch: { $eq: 'x.y' } } },
      { inner: { $keyMapMatch: { $or: [{ $eq: 'q' }, { $regex: '^a' }] } } },
    ],
    no: [
      { n: { $type: 'integer' } }, { n: { $mod: [2, 0] } }, { text: { $mod: [2, 1] } }, { n: { $regex: '3' } },
      { text: { $beginsWith: 'he' } }, { list: { $keyMapMatch: { $eq: '0' } } },
    ],
  })
  table('combine and negate', {
    yes: [
      {}, { $and: [] }, { $or: [] }, { $and: [{ n: 3 }, { yes: true }] }, { $or: [{ n: 4 }, { yes: true }] },
      { $nor: [{ n: 4 }, { yes: false }] }, { $not: { n: 4 } }, { n: { $not: { $gt: 3 } } },
      { $not: { $and: [{ n: 3 }, { yes: false }] } }, { $not: { absent: { $exists: true } } },
      { n: { $not: { $regex: 'x' } } }, { text: { $not: { $elemMatch: { $eq: 1 } } } },
      { n: { $not: { $not: { $eq: 3 } } } },
    ],
    no: [
      { $and: [{ n: 3 }, { yes: false }] }, { $or: [{ n: 4 }, { yes: false }] }, { $nor: [{ n: 3 }] },
      { $not: { n: 3 } }, { $not: { absent: 1 } }, { absent: { $not: { $regex: 'x' } } },
      { $not: { $or: [{ absent: 1 }] } },
    ],
  })

  table('negate a condition on elements as a whole, so that elements without the field pass', {
    yes: [
      { people: { $allMatch: { $not: { away: true } } } }, { people: { $elemMatch: { $not: { age: 1 } } } },
      { people: { $allMatch: { $nor: [{ away: true }, { age: 3 }] } } },
      { people: { $allMatch: { $not: { $or: [{ away: true }, { age: 3 }] } } } },
      { people: { $allMatch: { $not: { $not: { $or: [{ age: 1 }, { name: 'b' }] } } } } },
      { inner: { $keyMapMatch: { $not: { $eq: 'a' } } } },
    ],
    no: [
      { people: { $allMatch: { away: { $ne: true } } } }, { people: { $elemMatch: { age: { $ne: 1 } } } },
      { people: { $allMatch: { $not: { age: 1 } } } }, { people: { $not: { $elemMatch: { $not: { age: 1 } } } } },
      { list: { $elemMatch: { $not: { $gte: 1 } } } },
    ],
  })

  table('read anchors and classes of PCRE that JavaScript writes in another way', {
    yes: [
      { text: { $regex: '\\AHel' } }, { text: { $regex: 'lo\\z' } }, { text: { $regex: 'lo\\Z' } },
      { text: { $regex: '^[[:upper:]][[:lower:]]+$' } }, { text: { $regex: '^[^[:digit:][:space:][:punct:]]+$' } },
    ],
    no: [
      { text: { $regex: '\\Aello' } }, { text: { $regex: 'Hell\\z' } }, { text: { $regex: '[[:digit:]]' } },
      { text: { $regex: '\\\\A' } },
    ],
  })

  table('read {} as a part like CouchDB, as equality of the document with {}', {
    yes: [{ $not: {} }, { $nor: [{}] }, { $or: [{}, { n: 3 }] }, { $and: [] }],
    no: [{ $and: [{}] }, { $and: [{}, { n: 3 }] }, { $or: [{}] }],
  })

  it('are refused with the reason', () => {
    const refused: readonly [unknown, string, string][] = [
      ['n > 1', 'invalid_selector_json', 'Selector must be a JSON object, not: "n > 1"'],
      [{ n: { $bigger: 1 } }, 'invalid_operator', 'Invalid operator: $bigger'],
      [{ a: { $where: 'x' } }, 'not_supported', 'Unsupported operator: $where'],
      [{ $or: 7 }, 'bad_arg', 'Bad argument for operator $or: 7'],
      [{ $gt: 7 }, 'invalid_selector', 'One or more conditions is missing a field name.'],
      [{ '': 1 }, 'invalid_selector', 'One or more conditions is missing a field name.'],
      [{ 'a..b': 1 }, 'invalid_field_name', 'Invalid field name: a..b'],
      [{ a: { $in: 1 } }, 'bad_arg', 'Bad argument for operator $in: 1'],
      [{ a: { $mod: [0, 1] } }, 'bad_arg', 'Bad argument for operator $mod: [0,1]'],
      [{ a: { $mod: [1.5, 1] } }, 'bad_arg', 'Bad argument for operator $mod: [1.5,1]'],
      [{ a: { $regex: '(' } }, 'bad_arg', 'Bad argument for operator $regex: "("'],
      [{ a: { $regex: '[[:vowel:]]' } }, 'bad_arg', 'Bad argument for operator $regex: "[[:vowel:]]"'],
      [
        { a: { $regex: 'a'.repeat(1025) } }, 'bad_arg',
        'Bad argument for operator $regex: the pattern has 1025 characters, at most 1024 are allowed; write a shorter',
      ],
      [{ a: { $regex: 'a++b' } }, 'bad_arg', 'Bad argument for operator $regex: "a++b": the possessive quantifier ++'],
      [{ a: { $regex: 5 } }, 'invalid_operator', 'Invalid operator: $regex'],
      [{ $not: { a: { $elemMatch: { $size: -1 } } } }, 'bad_arg', 'Bad argument for operator $size: -1'],
    ]
    for (const [selector, code, reason] of refused) {
      expect(() =>
        parseSelector(selector), JSON.stringify(selector)).to.throw(SelectorError, reason).with.property('code', code)
    }
  })

  it('fail for a pattern that would block the thread, and for no other', () => {
    const asked: string[] = []
    const testInTime = (pattern: RegExp, text: string, msMax: number): boolean | null => {
      if (msMax === Number.POSITIVE_INFINITY) return pattern.test(text)
      asked.push(pattern.source)
      return null
    }
    const matches = (pattern: string, value: string): boolean =>
      compileSelector(parseSelector({ a: { $regex: pattern } }), testInTime)({ a: value })
    const long = 'a'.repeat(50_000)
    for (const pattern of ['^(a+)+$', '^(a|a)*$', '^(a|aa)+$', '(a*)*\\1b', 'a*a*a*a*a*b', '^(?:a{1,1000}){1,1000}$']) {
      expect(() => matches(pattern, `${long}!`), pattern)
        .to.throw(SelectorError, 'took more than 200 ms on a text of 50001 characters')
        .with.property('code', 'bad_arg')
    }
    const hidden = ['(?#[)^(a+)+b]', '\\Q[\\E?(a+)+[\\Q]\\E]', '(?x)#[\n(a+)+b#]', '(?x)(a+) +b', '(?x)(a+)#\n+b']
    for (const pattern of hidden) {
      expect(() => matches(pattern, long), pattern).to.throw(SelectorError, 'took more than 200 ms')
    }
    const short = `${'a'.repeat(60)}c`
    const combined = ['^' + '(a|a)'.repeat(30) + 'b', '^' + 'a?'.repeat(60) + 'b', '(?:a|aa|aaa)'.repeat(20) + 'b']
    for (const pattern of combined) {
      expect(() => matches(pattern, short), pattern).to.throw(SelectorError, 'on a text of 61 characters')
    }
    expect(() => matches('(|)'.repeat(30) + '(?=)x{0}$\\b', '')).to.throw(SelectorError, 'on a text of 0 characters')
    asked.length = 0
    expect(matches('^(monday|tuesday|wednesday|thursday|friday|saturday|sunday|a{60})c?$', short)).to.equal(true)
    expect(matches('^https?://(www|api)?x|colou?r|aa??c', short)).to.equal(true)
    expect(matches('^(x$|y$|z$|1$|2$|3$|4$|5$|6$|7$|8$|a{60}c$)', short)).to.equal(true)
    expect(asked).to.deep.equal([])
    expect(matches('a$', long)).to.equal(true)
    expect(matches('[(*+)*]{2}x', 'a(*x')).to.equal(true)
    expect(matches('^a+b', 'a'.repeat(900))).to.equal(false)
    expect(asked).to.deep.equal([])
  })

  const many = <T>(count: number, item: (index: number) => T): T[] =>
    Array.from({ length: count }, (_, index) => item(index))
  const tooMuch = /takes more than 1000000 steps/

  it('fail when parsing them takes too many steps', () => {
    const nested = (depth: number, inner: unknown, operator: string): unknown =>
      depth === 0 ? inner : { [operator]: nested(depth - 1, inner, operator) }
    const wide = Object.fromEntries(many(2000, index => [`f${index}`, 1]))
    expect(() => parseSelector(nested(900, wide, 'a'))).to.throw(SelectorError, tooMuch)
    expect(() =>
      parseSelector(nested(900, { $or: many(2000, () => ({ a: 1 })) }, '$not'))).to.throw(SelectorError, tooMuch)
  })

  const numbers = many(20_000, index => index)
  const names = Object.fromEntries(numbers.map(index => [`name${index}`, 0]))
  const text = 'x'.repeat(1_000_000)
  const accents = 'é'.repeat(30_000)
  for (const [what, condition, value] of [
    ['elements', { $elemMatch: { $or: many(1000, () => ({ $eq: -1 })) } }, numbers],
    ['values', { $in: many(1000, index => [index + 1]) }, numbers.map(index => [-index])],
    ['all values', { $all: [...many(1000, () => 19_999), -1] }, numbers],
    ['names', { $or: many(1000, () => ({ $keyMapMatch: { $eq: '' } })) }, names],
    ['members', { $or: many(1000, () => ({ $lt: {} })) }, names],
    ['characters', { $or: many(1000, () => ({ $lt: text })) }, text],
    ['sort keys', { $or: many(3000, index => ({ $gt: `${accents}${index}` })) }, accents],
  ] as const) {
    it(`fail when matching takes too many steps because of many ${what}`, () => {
      const selector = parseSelector({ a: condition })
      const matches = compileSelector(selector)
      expect(() => matches({ a: value })).to.throw(SelectorError, tooMuch).with.property('code', 'bad_arg')
      expect(() => matches({ a: 1 }), 'the next document').not.to.throw()
      if (what === 'sort keys') return
      expect(() => matchesSelector(selector, { a: value })).to.throw(SelectorError, tooMuch)
    })
  }

  it('may have many conditions', () => {
    const conditions = parseSelector({ $and: many(10_000, () => ({ a: { $gte: 0 } })) })
    const values = parseSelector({ a: { $in: numbers } })
    expect(matchesSelector(conditions, { a: 1 })).to.equal(true)
    expect(compileSelector(conditions)({ a: 1 })).to.equal(true)
    expect(matchesSelector(values, { a: [5, 19_999] })).to.equal(true)
    expect(compileSelector(values)({ a: [5, 19_999] })).to.equal(true)
  })

  it('fail when long names, patterns or prefixes take too many steps', () => {
    const either = (condition: object): object => ({ $or: Array.from({ length: 2000 }, () => condition) })
    expect(() => parseSelector(either({ [`${'a.'.repeat(100_000)}a`]: 1 }))).to.throw(SelectorError, tooMuch)
    expect(() => parseSelector(either({ a: { $regex: '[a-z]'.repeat(200) } }))).to.throw(SelectorError, tooMuch)
    expect(() => parseSelector(either({ a: { $regex: '\\p{L}'.repeat(20) } }))).to.throw(SelectorError, tooMuch)
    const prefixes = parseSelector({ a: either({ $elemMatch: { $beginsWith: `${'x'.repeat(50_000)}y` } }) })
    const document = { a: Array.from({ length: 10 }, () => 'x'.repeat(60_000)) }
    expect(() => matchesSelector(prefixes, document)).to.throw(SelectorError, tooMuch)
    expect(() => compileSelector(prefixes)(document)).to.throw(SelectorError, tooMuch)
  })

  it('show only the beginning of a large argument in an error', () => {
    expect(() => parseSelector({ a: { $in: 'x'.repeat(1_000_000) } }))
      .to.throw(SelectorError)
      .with.property('message').that.has.length.below(1100)
  })

  it('are false exactly when their negation is true, if the field exists', () => {
    const value = fc.oneof(
      fc.constant(null), fc.boolean(), fc.integer({ min: -3, max: 3 }), fc.constantFrom('a', 'b'),
      fc.array(fc.integer({ min: 0, max: 2 }), { maxLength: 2 }),
    )
    const test = fc.oneof(
      fc.tuple(fc.constantFrom('$eq', '$ne', '$lt', '$lte', '$gt', '$gte'), value),
      fc.tuple(fc.constantFrom('$in', '$nin', '$all'), fc.array(value, { maxLength: 2 })),
      fc.tuple(fc.constant('$type'), fc.constantFrom('null', 'array')))
    const { condition } = fc.letrec(tie => ({
      condition: fc.oneof({ maxDepth: 3 }, test.map(([operator, argument]) => ({ a: { [operator]: argument } })),
        fc.tuple(fc.constantFrom('$and', '$or', '$nor'), fc.array(tie('condition'), { minLength: 1, maxLength: 2 }))
          .map(([operator, list]) => ({ [operator]: list }))),
    }))
    fc.assert(fc.property(condition, value, (selector, a) => {
      expect(matchesSelector(parseSelector({ $not: selector }), { a })).to.equal(
        !matchesSelector(parseSelector(selector), { a }),
      )
    }), { numRuns: 300 })
  })
})

describe('field paths', () => {
  it('are parsed to the same path after formatting', () => {
    const step = fc.string({ minLength: 1, maxLength: 4, unit: fc.constantFrom('a', 'b', '.', ' ', 'é') })
    fc.assert(fc.property(fc.array(step, { minLength: 1, maxLength: 3 }), path => {
      expect(parseFieldPath(formatFieldPath(path))).to.deep.equal(path)
    }))
    for (const broken of ['.a', 'a.', 'a..b', '.', '']) {
      expect(() => parseFieldPath(broken), broken).to.throw(SelectorError)
    }
  })
})

describe('fields of a projection', () => {
  it('are refused when they are so many that one document would take too long', () => {
    const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `f${index}.b`)
    expect(parseFieldPaths(names(10_000))).to.have.length(10_000)
    expect(() => parseFieldPaths(names(100_000)))
      .to.throw(SelectorError, 'fields takes more than 1000000 steps')
      .with.property('code', 'bad_arg')
  })

  it('have only one spelling for an element of an array, so that a large value is not copied many times', () => {
    const document = { list: [['x'.repeat(1000)]] }
    const paths = parseFieldPaths(['list.0.0', 'list.00.0', 'list.0.00', 'list.000.000'])
    expect(projectFields(document, paths)).to.deep.equal({
      list: { 0: { 0: 'x'.repeat(1000) } },
    })
  })
})

describe('the order of JSON values', () => {
  it('compares strings as the bytes of UTF-8', () => {
    const character = fc.constantFrom('a', '\u007f', '\u00e9', '\ud7ff', '\ue000', '\uffff', '\u{10000}', '\u{10ffff}')
    const text = fc.array(character, { maxLength: 4 }).map(characters => characters.join(''))
    fc.assert(fc.property(text, text, (a, b) => {
      expect(Math.sign(compareStringBytes(a, b))).to.equal(Buffer.compare(Buffer.from(a), Buffer.from(b)))
    }))
  })

  it('ranks types, then compares within', () => {
    const ascending = [
      null, false, true, -1, 0, 2.5, 'a', 'b', 'ba', [], [1], [1, 0], [2], {}, { a: 1 }, { a: 2 }, { b: 0 },
      { b: 0, a: 0 },
    ]
    for (const [i, a] of ascending.entries()) {
      for (const [j, b] of ascending.entries()) {
        expect(Math.sign(compareJson(a, b, compareStringBytes)), JSON.stringify([a, b])).to.equal(Math.sign(i - j))
      }
    }
  })
})
