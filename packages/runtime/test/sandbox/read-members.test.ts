import assert from 'node:assert/strict'
import { readMembers } from '../../src/sandbox/functions/read-members.ts'

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
}

const doubtful = [
  ...[
    'emit(doc)', 'emit(doc["n"])', 'for (var name in doc) emit(name)', 'var { n } = doc; emit(n)', 'emit({ doc })',
    'emit("n" in doc)', 'var d = doc; emit(d.n)', 'emit({ ...doc })', 'emit(arguments[0].n)', 'emit(eval("doc").n)',
    'emit(doc.hasOwnProperty("n"))', 'emit(doc.valueOf().n)', 'emit(doc.__proto__)', 'emit(`${doc.n}`)',
    'emit(/}/.test(doc.n))', 'emit(d\\u006fc.n)', 'emit(doc.gr\u00f6\u00dfe)', 'emit(doc./**/[1])',
    'doc\n["n"]', 'function f() { emit(f.caller.arguments[0]) }; f()', 'emit(doc\n, 1)',
    'doc.list.forEach(function (doc) { emit(doc.n) })',
    'Object.prototype.me = function () { return this }; emit(doc.me.n)',
  ].map(statement => `function (doc) { ${statement} }`),
  'function (doc, all) { emit(doc.n) }', 'function ({ n }) { emit(n) }', 'function (doc = {}) { emit(doc.n) }',
  'function (...doc) { emit(doc.n) }', 'function () { emit(1) }', '', 'emit(doc.n)',
  // The value of these sources is a function behind the first.
  'function (doc) { emit(doc.n) } function (all) { emit(all) }', 'doc => { emit(doc.n) }, all => emit(all)',
  'doc => emit(doc.n), all => emit(all)',
  'doc => emit(doc.n)\nall => emit(all)', 'doc => emit(doc.n); all => emit(all)',
  'doc => { emit("{") }; all => { emit(all, "}") }', 'function (doc) { emit(doc.n) }(all => emit(all))',
  'doc => { emit(doc.n) /* { */ }; all => { emit(all) /* } */ }', 'doc => emit(doc.n))', 'doc => { emit(doc.n',
]

describe('readMembers', () => {
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

  it('finds nothing in a long source', () => {
    assert.equal(readMembers(`doc => { emit(doc.n) ${' '.repeat(5000)} }`), undefined)
  })

  it('ends soon for a source that is made to be slow', () => {
    for (const part of ['"', '\\', "'\\", '/*', '//', '(', ' ', 'a', '\n', 'function ', 'doc ', 'doc.', ';', '{}']) {
      for (const head of ['', 'doc => ', 'function (doc) { "']) {
        const result = readMembers(head + part.repeat((5000 - head.length) / part.length))
        assert.ok(result === undefined || result.length < 2)
      }
    }
  })
})
