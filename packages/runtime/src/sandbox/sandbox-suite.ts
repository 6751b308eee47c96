import assert from 'node:assert/strict'
import { respondTests } from './sandbox-respond-suite.ts'
import { SandboxError, unknownPosition } from './sandbox.ts'
import type { MapOutcome, Sandbox, SandboxFunction, SourcePosition } from './sandbox.ts'

export interface SandboxSuiteHost {
  /** Called once, before the first test. */
  open(): Sandbox
  close(): void
}

/** Tests that every `Sandbox` must pass. */
export function sandboxSuite(name: string, host: SandboxSuiteHost): void {
  describe(`sandbox: ${name}`, () => {
    let sandbox: Sandbox
    before(() => { sandbox = host.open() })
    after(() => host.close())
    const map = (source: string, ...documents: string[]) => sandbox.map(functionOf(source), documents)
    const call = async (source: string, ...items: string[]) => await sandbox.call(functionOf(source), items)
    const refusal = async (promise: Promise<unknown>): Promise<SandboxError> => {
      const error = await promise.then(() => assert.fail('no error'), (thrown: unknown) => thrown)
      assert(error instanceof SandboxError, String(error))
      return error
    }

    describe('map functions', () => {
      it('emit rows for each document, in the order of the calls', async () => {
        const outcomes = await map('function (doc) { emit(doc.n, [doc.n]); if (doc.n > 1) emit("a\\nb") }',
          '{"n":1}', '{"n": 2,\n"x":"\u2028"}')
        assert.deepEqual(outcomes, [
          rowsOf(['1', '[1]']), rowsOf(['2', '[2]'], ['"a\\nb"', 'null']),
        ])
      })

      it('emit U+FFFD for halves of surrogate pairs, which are not valid JSON for others', async () => {
        const source = 'doc => { emit(doc.t.slice(0, 2), { [doc.t.slice(2)]: doc.t }); emit("\\\\ud83d") }'
        assert.deepEqual(await map(source, '{"t":"a\u{1f600}b"}'), [{ kind: 'rows', rows: [
          { key: '"a\\ufffd"', value: '{"\\ufffdb":"a\u{1f600}b"}' }, { key: '"\\\\ud83d"', value: 'null' },
        ] }])
      })

      it('emit U+FFFD also when they change what texts are replaced with, or write escapes themselves', async () => {
        const source = `() => {
          RegExp.prototype[Symbol.replace] = String.prototype.replace = () => "1]\\n2"
          emit("\\ud83d", JSON.rawJSON('"\\\\uD83D"'))
          emit(1, JSON.rawJSON('"\\\\uD83D\\\\uDE00"'))
        }`
        assert.deepEqual(await map(source, '{}'), [rowsOf(['"\\ufffd"', '"\\ufffd"'], ['1', '"\\uD83D\\uDE00"'])])
      })

      it('emit at most 20,000 rows for a document', async () => {
        const source = 'doc => { for (let n = 0; n < doc.n; n++) emit(n) }'
        const [most, tooMany, one] = await map(source, '{"n":20000}', '{"n":20001}', '{"n":1}')
        assert.equal(most?.kind === 'rows' && most.rows.length, 20_000)
        assert.deepEqual(tooMany, { kind: 'tooManyRows', count: 20_001 })
        assert.deepEqual(one, rowsOf(['0', 'null']))
      })

      it('are refused when they emit hundreds of thousands of rows in one call', async () => {
        const source = '() => { for (let n = 0; n < 20000; n++) emit(0) }'
        assert.equal((await map(source, ...Array<string>(10).fill('{}'))).length, 10)
        const [counted] = await map('() => { for (let n = 0; n < 500000; n++) emit(0) }', '{}')
        assert.deepEqual(counted, { kind: 'tooManyRows', count: 500_000 })
        assert.equal((await refusal(map(source, ...Array<string>(14).fill('{}')))).code, 'too_large')
      })

      it('emit null for undefined, and name and message of errors', async () => {
        const source = 'doc => { emit(); emit(undefined, new TypeError("bad")); emit({a: undefined}) }'
        const outcomes = await map(source, '{}')
        assert.deepEqual(outcomes, [rowsOf(
          ['null', 'null'], ['null', '{"error":"TypeError","message":"bad"}'], ['{}', 'null'],
        )])
      })

      it('receive documents as bytes', async () => {
        const document = Buffer.from('{"name":"\u00e4\u{1f600}"}')
        assert.deepEqual(await sandbox.map(functionOf('doc => emit(doc.name)'), [document, '{"name":"b"}']), [
          rowsOf(['"\u00e4\u{1f600}"', 'null']), rowsOf(['"b"', 'null']),
        ])
      })

      it('lose the rows of a document for which they throw, and of no other one', async () => {
        const source = 'function (doc) {\n  emit(1);\n  if (doc.bad) doc.missing.member;\n}'
        const [first, second, third] = await map(source, '{}', '{"bad":true}', '{}')
        assert.deepEqual([first, third], [rowsOf(['1', 'null']), rowsOf(['1', 'null'])])
        assert.deepEqual(second, {
          kind: 'error', message: "TypeError: Cannot read properties of undefined (reading 'member')",
          line: 3, column: 28, module: null,
        })
      })

      it('cannot change a document', async () => {
        const source = 'function (doc) { doc.n = 2; doc.m = 3; doc.a.b[0] = 4; delete doc.a; emit(doc.n, doc) }'
        const document = '{"n":1,"a":{"b":[1,{"c":null}]}}'
        assert.deepEqual(await map(source, document), [rowsOf(['1', document])])
        const strict = 'function (doc) { "use strict"; doc.a.b.push(2); emit(doc.n) }'
        const [outcome] = await map(strict, document)
        assert.equal(outcome?.kind, 'error')
        assert.match((outcome as { readonly message: string }).message, /^TypeError: .*not extensible/)
      })

      it('may copy a document and change the copy', async () => {
        const source = 'doc => { const copy = JSON.parse(JSON.stringify(doc)); copy.n = 2; emit(copy.n, doc.n) }'
        assert.deepEqual(await map(source, '{"n":1}'), [rowsOf(['2', '1'])])
      })

      it('may be missing documents', async () => {
        assert.deepEqual(await map('doc => emit(doc.n)'), [])
      })
    })

    describe('calls', () => {
      it('are described by their length when they throw a long value', async () => {
        const source = 'length => { throw "x".repeat(length) }'
        const [short, long] = await call(source, '[65534]', '[65535]')
        assert.equal(short?.kind, 'thrown')
        const message = 'The function threw a value of 65537 characters; the limit is 65536'
        assert.deepEqual(long, { kind: 'error', message, ...unknownPosition })
      })

      it('keep the beginning of a long reason when they refuse', async () => {
        const thrown = { forbidden: 'x'.repeat(10_000) }
        const [outcome] = await call('() => { throw { forbidden: "x".repeat(1e5), more: 1 } }', '[]')
        assert.deepEqual(outcome, { kind: 'thrown', json: JSON.stringify(thrown) })
        const errors = Array.from({ length: 5000 }, (_, n) => ({ path: `/lines/${n}`, message: 'missing' }))
        const [listed] = await call('errors => { throw { unauthorized: { errors } } }', JSON.stringify([errors]))
        const unauthorized = JSON.stringify({ errors }).slice(0, 10_000)
        assert.deepEqual(listed, { kind: 'thrown', json: JSON.stringify({ unauthorized }) })
      })

      it('have short errors, whatever they change', async () => {
        const long = '"x".repeat(1e6)'
        const sources = [
          `() => { String.prototype.slice = () => ${long}; throw new Error(${long}) }`,
          `() => { Object.prototype.toJSON = () => [${long}]; throw new Error("x") }`,
          `() => { throw new Proxy(new Error("x"), { get: (t, k) => typeof k === "symbol" ? [${long}] : t[k] }) }`,
        ]
        for (const source of sources) {
          const [outcome] = await call(source, '[]')
          assert.equal(outcome?.kind, 'error', source)
          assert.ok(JSON.stringify(outcome).length < 2000, source)
        }
      })

      it('return JSON', async () => {
        const outcomes = await call('(a, b) => b === undefined ? undefined : { sum: a + b }', '[1,2]', '[1]')
        assert.deepEqual(outcomes, [{ kind: 'value', json: '{"sum":3}' }, { kind: 'value', json: 'null' }])
      })

      it('return U+FFFD for halves of surrogate pairs, which UTF-8 cannot encode', async () => {
        const outcomes = await call('text => [text, text[1] + text[0]]', '["\\ud83d\\ude00"]', '["\\\\ud800"]')
        assert.deepEqual(outcomes.map(outcome => outcome.kind === 'value' && JSON.parse(outcome.json)), [
          ['😀', '\ufffd\ufffd'], ['\\ud800', 'u\\'],
        ])
        const thrown = await call(
          'text => { throw { forbidden: text } }', '["\ud83d\ude00"]', '["\\ud83d\\\\ud83d"]',
          JSON.stringify(['a'.repeat(9999) + '😀'.repeat(30_000)]))
        assert.deepEqual(thrown.map(outcome => outcome.kind === 'thrown' && JSON.parse(outcome.json).forbidden), [
          '😀', '\ufffd\\ud83d', `${'a'.repeat(9999)}\ufffd`,
        ])
      })

      it('reduce with keys, values and rereduce', async () => {
        const source = 'function (keys, values, rereduce) { return rereduce ? sum(values) : keys.length }'
        assert.deepEqual(await call(source, '[[["a","id1"],["b","id2"]],[5,6],false]', '[null,[2,3],true]'), [
          { kind: 'value', json: '2' }, { kind: 'value', json: '5' },
        ])
      })

      it('return what was thrown unless it is an error', async () => {
        const source = 'function (newDoc) { throw newDoc }'
        assert.deepEqual(await call(source, '[{"forbidden":"no"}]', '[{"unauthorized":"who?"}]', '["text"]'), [
          { kind: 'thrown', json: '{"forbidden":"no"}' }, { kind: 'thrown', json: '{"unauthorized":"who?"}' },
          { kind: 'thrown', json: '"text"' },
        ])
      })

      it('report results that are not JSON', async () => {
        const [big, circular] = await call('kind => { const o = {}; o.o = o; return kind ? 1n : o }', '[1]', '[0]')
        assert(big?.kind === 'error' && /BigInt/.test(big.message))
        assert(circular?.kind === 'error' && /circular/.test(circular.message))
      })
    })

    describe('filter functions', () => {
      const filter = (source: string, request: string, ...documents: string[]) =>
        sandbox.filter({ ...functionOf(source), modules: '{"limit":2}' }, request, documents)

      it('get each document with the request, and the design document as this', async () => {
        const source = 'function (doc, req) { return doc.n > this.limit || doc.n === req.query.n }'
        assert.deepEqual(await filter(source, '{"query":{"n":1}}', '{"n":1}', '{"n":2}', '{"n":3}'), [
          { kind: 'value', json: 'true' }, { kind: 'value', json: 'false' }, { kind: 'value', json: 'true' },
        ])
        assert.deepEqual(await filter(source, '{}'), [])
      })

      it('let a document pass for every true value', async () => {
        const passing = ['1', '"a"', '{}', '[]', 'Infinity', '1n', '() => {}']
        const values = [...passing, '0', '""', 'null', 'undefined', 'NaN', '0n']
        const outcomes = values.map(value => ({ kind: 'value', json: String(passing.includes(value)) }))
        const documents = values.map((_, at) => `{"at":${at}}`)
        assert.deepEqual(await filter(`doc => [${values.join()}][doc.at]`, '{}', ...documents), outcomes)
      })

      it('fail for the documents for which they throw', async () => {
        const source = 'doc => { if (doc.bad) throw "no"; return true }'
        assert.deepEqual(await filter(source, '{}', '{"bad":1}', '{}'), [
          { kind: 'thrown', json: '"no"' }, { kind: 'value', json: 'true' },
        ])
      })
    })

    it('reports functions that are asynchronous', async () => {
      const source = 'async function () { throw new Error("late") }'
      for (const outcomes of [await call(source, '[]'), await map(source, '{}')]) {
        const [outcome] = outcomes
        assert(outcome?.kind === 'error' && /asynchronous/.test(outcome.message))
      }
    })

    describe('sources', () => {
      const forms: Readonly<Record<string, string>> = {
        'a bare function': 'function (x) { return x + 1 }',
        'a function with a name': 'function add(x) { return x + 1 }',
        'an arrow function': 'x => x + 1',
        'a function in parentheses': '(function (x) { return x + 1 })',
        'a function that ends with a semicolon': 'function(x) { return x + 1 };',
        'a named function that ends with a semicolon': '// Adds 1.\nfunction add(x) { return x + 1 };;\n',
        'a function that ends with a comment': 'function(x) { return x + 1 } // one more',
        'a function behind a comment': '/* one */\n// more\nfunction(x) { return x + 1 }',
        'a variable and a bare function': 'var one = 1;\nfunction(x) { return x + one }',
        'another function and a bare function': 'function one() { return 1 }\nfunction(x) { return x + one() }',
        'a script that ends with an arrow function': 'const one = 1; x => x + one',
        'a function that a function returns': '(function (one) { return function (x) { return x + one } })(1)',
        'current syntax': 'x => ({ y: null }).y?.z ?? [x].at(-1) + [1, 2].toSorted()[0]',
      }
      for (const [form, source] of Object.entries(forms)) {
        it(`may be ${form}`, async () => {
          await sandbox.compile(functionOf(source))
          assert.deepEqual(await call(source, '[1]'), [{ kind: 'value', json: '2' }])
        })
      }

      it('do not share the variables of their scripts', async () => {
        const of = (own: number) => `const own = ${own}; function help() { return own }\nfunction() { return help() }`
        await call(of(1), '[]')
        assert.deepEqual(await call(of(2), '[]'), [{ kind: 'value', json: '2' }])
        assert.deepEqual(await call(of(1), '[]'), [{ kind: 'value', json: '1' }])
      })

      it('do not share globals, nor what they change of built-in objects', async () => {
        await call('() => { leaked = 1; Object.prototype.toJSON = () => "spoiled"; Array.prototype.map = null }', '[]')
        const source = '() => [typeof leaked, [1].map(x => x + 1)]'
        assert.deepEqual(await call(source, '[]'), [{ kind: 'value', json: '["undefined",[2]]' }])
      })

      const broken: readonly (readonly [string, RegExp, number | null, number | null])[] = [
        ['function (doc) { emit(doc. }', /Unexpected token/, 1, 28],
        ['function (doc) {\n  emit(doc.a;\n}', /missing \) after argument/, 2, 12],
        ['function help() {}\nfunction (doc) {\n  let x = ;\n}', /Unexpected token ';'/, 3, 11],
        ['(keys, values =>\n  1', /Unexpected end of input|missing \)/, 2, 4],
        ['PERFORM EMIT.', /Unexpected identifier/, 1, 9],
        ['42', /not evaluate to a function/, null, null],
        ['missing.member', /ReferenceError: missing is not defined/, null, null],
        ['', /./, null, null],
      ]
      for (const [source, message, line, column] of broken) {
        it(`that are broken are refused: ${JSON.stringify(source)}`, async () => {
          for (const promise of [sandbox.compile(functionOf(source)), map(source, '{}'), call(source, '[]')]) {
            const error = await refusal(promise)
            assert.equal(error.code, 'compilation')
            assert.match(error.message, message)
            if (source !== '') assert.deepEqual(error.position, positionOf(line, column))
          }
        })
      }
    })

    describe('globals', () => {
      it('are sum, isArray, toJSON and log', async () => {
        const source = '() => { log("a"); return [sum([1, 2]), isArray([]), isArray({}), toJSON({ b: 1 })] }'
        assert.deepEqual(await call(source, '[]'), [{ kind: 'value', json: '[3,true,false,"{\\"b\\":1}"]' }])
        const others = '() => [sum([1, , 2]), sum({ a: 1, b: 2 }), sum(), toJSON([1], null, 1)]'
        assert.deepEqual(await call(others, '[]'), [{ kind: 'value', json: '[3,3,0,"[\\n 1\\n]"]' }])
      })

      it('pass what map functions log to the caller who asks for it', async () => {
        const lines: string[] = []
        const source = 'doc => { log(doc.a); log({ b: doc.a }); if (doc.a > 1) throw new Error("no"); log("end") }'
        await sandbox.map(functionOf(source), ['{"a":1}', '{"a":2}'], line => lines.push(line))
        assert.deepEqual(lines, ['1', '{"b":1}', 'end', '2', '{"b":2}'])
      })

      it('do not include those of Node.js, nor memory that is shared', async () => {
        const shared = ['WebAssembly', 'SharedArrayBuffer', 'Atomics']
        const names = ['process', 'module', 'Buffer', 'setTimeout', 'fetch', ...shared]
        const source = `() => [${names.map(name => `typeof ${name}`).join()}]`
        const [outcome] = await call(source, '[]')
        assert.deepEqual(outcome, { kind: 'value', json: JSON.stringify(names.map(() => 'undefined')) })
      })
    })

    describe('code in texts', () => {
      const makers = [
        'eval("1")', '(0, eval)("1")', 'Function("return 1")()', 'new Function("return 1")()',
        ...[
          '() => {}', 'function* () {}', 'async () => {}', 'async function* () {}', 'emit', 'log', 'Object', 'class {}',
        ].map(value => `(${value}).constructor("return 1")`),
      ]
      const message = 'EvalError: Functions of design documents cannot make code of texts.'

      it('is not run by functions, in whichever form', async () => {
        for (const maker of makers) {
          const lines = [`doc => emit(${maker})`, `const own = 1\nfunction (doc) { emit(${maker}) }`]
          for (const source of lines) {
            const [outcome] = await map(source, '{}')
            assert(outcome?.kind === 'error', maker)
            assert.equal(outcome.message, message, maker)
          }
        }
      })

      it('is not run by sources while they are compiled', async () => {
        for (const source of ['(eval("1"), doc => {})', 'const kept = eval("1")\nfunction (doc) {}']) {
          const { code, message: given } = await refusal(sandbox.compile(functionOf(source)))
          assert.deepEqual([code, given], ['compilation', message])
        }
      })

      it('is not run by modules, nor by functions that a source has kept', async () => {
        const modules = JSON.stringify({ lib: 'exports.run = function () { return eval("1") }' })
        const outcomes = [
          ...await sandbox.call({ ...functionOf('() => require("lib").run()'), modules }, ['[]']),
          ...await call('const kept = eval\nfunction () { return kept("1") }', '[]'),
        ]
        assert.deepEqual(outcomes.map(outcome => outcome.kind === 'error' && outcome.message), [message, message])
      })

      it('has constructors that are known as before', async () => {
        const source = '() => [Function.name, log instanceof Function, log.constructor === Function, typeof eval]'
        assert.deepEqual(await call(source, '[]'), [{ kind: 'value', json: '["Function",true,true,"function"]' }])
      })
    })

    describe('library modules', () => {
      const modules = JSON.stringify({ views: { lib: {
        one: 'exports.value = 1',
        two: 'var one = require("./one");\nmodule.exports = function () { return one.value + 1 }',
        deep: { three: 'exports.value = require("../two")() + require("views/lib/one").value; exports.id = module.id' },
        broken: 'exports.fail = function () {\n  throw new Error("broken")\n}',
        brokenAtOnce: 'throw new Error("broken")',
        syntax: 'exports = (',
        throwing: 'throw "no"',
        cyclic: 'var cycle = {}; cycle.cycle = cycle; throw cycle',
        big: 'throw 1n',
        frozen: 'throw Object.freeze(new SyntaxError("cold"))',
        requiring: 'require("./none")',
        counter: 'var count = 0; exports.next = function () { return ++count }',
      } } })
      const withModules = (source: string) => ({ ...functionOf(source), modules })

      it('are found by absolute and relative paths', async () => {
        const source = '() => { var three = require("views/lib/deep/three"); return [three.value, three.id] }'
        assert.deepEqual(await sandbox.call(withModules(source), ['[]']), [
          { kind: 'value', json: '[3,"views/lib/deep/three"]' },
        ])
      })

      it('are loaded once', async () => {
        const source = '() => [require("views/lib/counter").next(), require("./views/lib/counter").next()]'
        assert.deepEqual(await sandbox.call(withModules(source), ['[]']), [{ kind: 'value', json: '[1,2]' }])
      })

      it('have their path in the position of an error', async () => {
        const [outcome] = await sandbox.call(withModules('() => require("views/lib/broken").fail()'), ['[]'])
        assert.deepEqual(outcome, {
          kind: 'error', message: 'Error: broken', line: 2, column: 9, module: 'views/lib/broken',
        })
        const [atOnce] = await sandbox.call(withModules('() => require("views/lib/brokenAtOnce")'), ['[]'])
        assert.deepEqual(atOnce, {
          kind: 'error', code: 'compilation_error', message: 'Error: broken', line: 1, column: 7,
          module: 'views/lib/brokenAtOnce',
        })
      })

      it('are an error of the call when they are missing or broken', async () => {
        const missing = ['views/lib/none', 'views/lib', 'constructor', '__proto__/x', 'node:fs', '../../etc/passwd']
        for (const path of missing) {
          const [outcome] = await sandbox.call(withModules(`() => require(${JSON.stringify(path)})`), ['[]'])
          assert(outcome?.kind === 'error' && /has no module/.test(outcome.message), path)
          assert.equal(outcome.code, 'invalid_require_path')
        }
        for (const name of ['syntax', 'throwing', 'requiring']) {
          const [outcome] = await sandbox.call(withModules(`() => require("views/lib/${name}")`), ['[]'])
          assert(outcome?.kind === 'error' && outcome.code === 'compilation_error', name)
          assert.match(outcome.message, /odule 'views\/lib\/(syntax'|throwing' threw "no"|none')/)
        }
        for (const name of ['cyclic', 'big', 'frozen']) {
          const [outcome] = await sandbox.call(withModules(`() => require("views/lib/${name}")`), ['[]'])
          assert(outcome?.kind === 'error' && outcome.code === 'compilation_error', name)
          assert.match(outcome.message, name === 'frozen' ? /cold \(in module/ : /cannot be described/)
        }
      })
    })

    respondTests(() => sandbox)

    it('refuses calls with too many items, and too long results', async () => {
      const many = await refusal(sandbox.map(functionOf('doc => {}'), Array(1001).fill('{}')))
      assert.equal(many.code, 'too_large')
      const repeated = (text: string, mebi: number): string => `() => "${text}".repeat(${mebi} * 1024 * 1024)`
      for (const source of [repeated('x', 17), repeated('\u20ac', 6)]) {
        assert.equal((await refusal(call(source, '[]'))).code, 'too_large')
      }
      assert.equal((await call(repeated('\u20ac', 5), '[]')).length, 1)
    })
  })
}

function functionOf(source: string): SandboxFunction {
  return { database: 'db', designDocument: '_design/d', modules: '{}', source }
}

function rowsOf(...rows: readonly (readonly [string, string])[]): MapOutcome {
  return { kind: 'rows', rows: rows.map(([key, value]) => ({ key, value })) }
}

function positionOf(line: number | null, column: number | null): SourcePosition {
  return { line, column, module: null }
}
