import assert from 'node:assert/strict'
import { MemorySandbox } from '../../src/sandbox/sandbox-memory.ts'
import { onlyReads } from '../../src/sandbox/functions/only-reads.ts'

const reading = [
  'function (doc) { emit(doc._id, null) }',
  'function (doc) { if (doc.type === "order" && doc.n >= 3 || doc.n <= 4) emit(doc.date, doc.customer.id) }',
  'function (doc) { for (var i = 0; i < doc.list.length; i++) { emit(doc.list[i], i) } }',
  'function (doc) { for (var name in doc) if (doc[name] !== null) emit(name, doc[name]) }',
  '(doc) => { let n = 0; for (const { a, b } of doc.list) { n += a * b; ++n } emit(n) }',
  'doc => { const { list } = doc; (doc.list || []).forEach(each => { emit(each.a) }) }',
  'function(doc) { if (Array.isArray(doc.list)) Object.keys(doc.list[0]).forEach(function (k) { emit(k, 1) }) }',
  'function (doc) { var words = doc.text.toLowerCase().split(" "); words = words.filter(w => w); emit(words.length) }',
]

/** Each of them changes its document if that is not frozen. */
const changing = [
  'doc.n = 2', 'doc["n"] = 2', 'doc\n.\nn = 2', 'doc. // {\n n = 2', 'doc./* ( */n = 2', 'doc.n += 1', 'doc.n <<= 1',
  'doc.n >>>= 1', 'doc.n ??= doc.m = 2', 'doc.n ||= 2, doc.m ||= 2', 'doc.n++', '--doc.n', '++doc\n.n', 'delete doc.n',
  '[doc.n] = [2]', '({ a: doc.n } = { a: 2 })', 'var { a } = doc, b; ({ a, b: doc.n } = { a: 1, b: 2 })',
  'for (doc.n of [2]) {}', 'for (doc.n in { a: 1 }) {}', 'for (doc["n"] of [2]) {}', 'doc.list.push(1)',
  'doc.list["pu" + "sh"](1)', '(doc.list["pu" + "sh"])(1)', 'doc.list["pu" + "sh"]?.(1)', 'doc.list["pu" + "sh"]`1`',
  'doc.list.pu\\u0073h(1)', 'Object.assign(doc, { n: 2 })', 'Object.defineProperty(doc, "n", { value: 2 })',
  'Reflect.set(doc, "n", 2)', '[].push.call(doc.list, 1)', 'eval("doc" + ".n=2")',
  'doc.constructor.assign(doc, { n: 2 })',
  'doc.__defineGetter__("n", () => 2)', 'with (doc) { n = 2 }', 'var a = doc.n = 2', 'doc.list.sort()',
  'Function("doc", "doc.n" + "=2")(doc)', 'doc.list.forEach(function (each, at, all) { all[at] = 5 })',
]

describe('onlyReads', () => {
  for (const source of reading) {
    it(`says yes for ${source}`, () => {
      assert.equal(onlyReads(source), true)
    })
  }

  for (const statement of changing) {
    it(`says no for ${JSON.stringify(statement)}`, () => {
      assert.equal(onlyReads(`function (doc) { ${statement}; emit(doc) }`), false)
    })
  }

  it('says no for a long source', () => {
    assert.equal(onlyReads(`doc => { emit(doc.n) ${' '.repeat(5000)} }`), false)
  })

  it('ends soon for a source that is made to be slow', () => {
    const parts = ['const{', 'const [a,', 'for(', 'for (a', 'a\t', '(', ' ', 'a', '++a ', 'const ', ') ', 'let a, ']
    for (const part of parts) assert.equal(typeof onlyReads(part.repeat(5000 / part.length)), 'boolean')
  })

  it('gives functions that change their document the frozen one', async () => {
    const sandbox = new MemorySandbox()
    const document = '{"n":1,"m":0,"list":[3,2]}'
    for (const statement of changing) {
      const called = {
        database: 'db', designDocument: '_design/d', modules: '{}',
        source: `function (doc) { try { ${statement} } catch (e) {} emit(doc) }`,
      }
      const [outcome] = await sandbox.map(called, [document])
      assert.deepEqual(outcome, { kind: 'rows', rows: [{ key: document, value: 'null' }] }, statement)
    }
  })
})
