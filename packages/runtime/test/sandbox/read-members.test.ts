import assert from 'node:assert/strict'
import fc from 'fast-check'
import { readMembers } from '../../src/sandbox/functions/read-members.ts'
import { MemorySandbox } from '../../src/sandbox/sandbox-memory.ts'

const known: Record<string, readonly string[]> = {
  'function (doc) { emit(doc._id, null) }': ['_id'],
  'function(doc){if(doc.type==="order"&&doc.date)emit(doc.date,doc.customer.id)};': ['type', 'date', 'customer'],
  'doc => emit(doc.n, doc . m)': ['n', 'm'],
  '(doc) => { (doc?.list || []).forEach(each => { emit(each, doc\n.unit) }) }': ['list', 'unit'],
  'function map(d) {\n  // d\n  var found = [] /* d */\n  found.push(d.n)\n  emit("it\'s d\\"", found)\n}\n': ['n'],
  'function (doc) { emit({ ...doc.address, a: "}" }) }': ['address'],
  'function (doc) { var redoc = doc.a, doc2 = 1, $doc = 2; emit(redoc, doc2 + $doc) }': ['a'],
  'function (doc) { emit(1) }': [],
  'doc => {}': [],
  '({ n, list: all, }) => { emit(n, all) }': ['n', 'list'],
  'function ({}) { emit(1) }': [],
  'function (doc) { if (doc && doc.n) emit(doc.n) }': ['n'],
  'doc => { const { n } = doc.all; var {a,b}=doc; emit(n, a) }': ['a', 'b', 'all'],
  'doc => { var { n } = doc\n.m; emit(n) }': ['m'],
  'doc => {\n let { n } = doc\n // n\n if (n) {\n const { m: k } = doc\n }\n emit(doc.k)\n}': ['n', 'm', 'k'],
}

const doubtful = [
  ...[
    'emit(doc)', 'emit(doc["n"])', 'for (var name in doc) emit(name)', 'var { n: { m } } = doc; emit(m)',
    'emit({ doc })', 'emit("n" in doc)', 'var d = doc; emit(d.n)', 'emit({ ...doc })', 'emit(arguments[0].n)',
    'emit(eval("doc").n)', 'emit(doc.hasOwnProperty("n"))', 'emit(doc.valueOf().n)', 'emit(doc.__proto__)',
    'emit(`${doc.n}`)',
    'emit(/}/.test(doc.n))', 'emit(d\\u006fc.n)', 'emit(doc.gr\u00f6\u00dfe)', 'emit(doc./**/[1])',
    'doc\n["n"]', 'function f() { emit(f.caller.arguments[0]) }; f()', 'emit(doc\n, 1)',
    'doc.list.forEach(function (doc) { emit(doc.n) })',
    'require("views/lib/a"); emit(doc.all)', 'emit(Object.getPrototypeOf({}), doc.n)',
    'const { n, ...all } = doc; emit(all)', 'const { n = 1 } = doc; emit(n)', 'let { "n": m } = doc; emit(m)',
    'const { [doc.n]: m } = doc; emit(m)', 'var { n } = doc, all = doc; emit(all)',
    'var { n } = doc\n["m"]; emit(n)', 'var { n } = doc\n in doc; emit(n)', 'var { toString } = doc; emit(toString)',
    'if (doc && doc) emit(1)', 'if ("n" in doc && doc.m) emit(1)', 'emit(1, doc && 1 || doc)',
    'all = { n } = doc; emit(all)',
    'Object.prototype.me = function () { return this }; emit(doc.me.n)',
  ].map(statement => `function (doc) { ${statement} }`),
  'function (doc, all) { emit(doc.n) }', 'function ({ n = 1 }) { emit(n) }', 'function ({ ...all }) { emit(all) }',
  'function ([n]) { emit(n) }', '({ valueOf }) => { emit(1) }', '({ n: { m } }) => { emit(m) }',
  'function (doc = {}) { emit(doc.n) }', 'function (...doc) { emit(doc.n) }', 'function () { emit(1) }',
  '', 'emit(doc.n)',
  // The value of these sources is a function behind the first.
  'function (doc) { emit(doc.n) } function (all) { emit(all) }', 'doc => { emit(doc.n) }, all => emit(all)',
  'doc => emit(doc.n), all => emit(all)',
  'doc => emit(doc.n)\nall => emit(all)', 'doc => emit(doc.n); all => emit(all)',
  'doc => { emit("{") }; all => { emit(all, "}") }', 'function (doc) { emit(doc.n) }(all => emit(all))',
  'doc => emit(doc.n) /*\n*/ all => emit(all)', 'doc => emit(doc.n) /*\r*/ function (all) { emit(all) }',
  'doc => { emit(doc.n) /* { */ }; all => { emit(all) /* } */ }', 'doc => emit(doc.n))', 'doc => { emit(doc.n',
]

/** Many of these sources do not compile, or are doubtful. */
const source = fc.tuple(
  fc.constantFrom(
    'doc => ', 'doc => {', '(doc) => { ', 'function (doc) {', '({ a }) => { ', 'function ({ a, b: doc }) {',
  ),
  fc.array(fc.tuple(
    fc.constantFrom(
      'emit(doc.a)', 'emit(doc.b, doc?.a)', 'emit("it\'s doc.c", doc)', 'var doc = {}', 'doc', '{', '}', 'emit(a)',
      'var {a} = doc', 'emit(doc && doc.b)', 'var { b: a, } = doc',
    ),
    fc.constantFrom('', ';', '\n', ',', ' /* } */ ', '/*\n*/', '// "\n', '"', '/', '`', '.c', '["c"]', '<!--', '\\'),
  ), { minLength: 1, maxLength: 2 }),
  fc.constantFrom(
    '', '}', '};', '} all => { emit(all) }', '; all => emit(all)', ', all => emit(all)', 'all => emit(all)',
  ),
).map(([head, statements, end]) => head + statements.flat().join('') + end)

describe('readMembers', () => {
  it('finds the members without which a function emits other rows', async function () {
    this.timeout(30_000)
    const sandbox = new MemorySandbox()
    const document = { _id: 'd', a: { doc: 1 }, b: 'x', c: [2] }
    let compared = 0
    await fc.assert(fc.asyncProperty(source, async text => {
      const names = readMembers(text)
      if (names === undefined) return
      const members = Object.entries(document).filter(([name]) => name === '_id' || names.includes(name))
      const called = { database: 'db', designDocument: '_design/d', modules: '{}', source: text }
      const outcomes = (value: object): Promise<unknown> => (
        sandbox.map(called, [JSON.stringify(value)]).catch((error: Error) => error.message))
      assert.deepEqual(await outcomes(Object.fromEntries(members)), await outcomes(document))
      compared++
    }), { numRuns: 6000 })
    assert.ok(compared > 100, `${compared} sources`)
  })

  for (const [source, names] of Object.entries(known)) {
    it(`finds ${names.length} members in ${JSON.stringify(source)}`, () => {
      assert.deepEqual(readMembers(source), names)
    })
  }

  for (const source of doubtful) {
    it(`finds nothing in ${JSON.stringify(source)}`, () => {
      assert.equal(readMembers(source), undefined)
    })
  }

  it('finds nothing in a source with more than 32 members', () => {
    const source = (count: number): string => `doc => { ${'doc.n; '.repeat(40)}${
      Array.from({ length: count }, (_, index) => `doc.m${index}`).join(';')} }`
    assert.equal(readMembers(source(31))?.length, 32)
    assert.equal(readMembers(source(32)), undefined)
  })

  it('finds nothing in a long source', () => {
    assert.equal(readMembers(`doc => { emit(doc.n) ${' '.repeat(5000)} }`), undefined)
  })

  it('ends soon for a source that is made to be slow', () => {
    const parts = [
      '"', '\\', "'\\", '/*', '//', '(', ' ', 'a', '\n', 'function ', 'doc ', 'doc.', ';', '{}', '({', 'let{', ',',
      'let{a}=doc', 'let {}\n', '(doc\n',
    ]
    for (const part of parts) {
      for (const head of ['', 'doc => ', 'function (doc) { "']) {
        const result = readMembers(head + part.repeat((5000 - head.length) / part.length))
        assert.ok(result === undefined || result.length < 2)
      }
    }
  })
})
