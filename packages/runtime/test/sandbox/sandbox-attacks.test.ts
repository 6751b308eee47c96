import { expect } from 'chai'
import type { CallOutcome, SandboxFunction } from '../../src/sandbox/sandbox.ts'
import { SandboxError } from '../../src/sandbox/sandbox.ts'
import { functionOf, openSandbox } from './test-sandbox.ts'

const limits = { callMs: 300, heapMiB: 16, residentMiB: 200, childrenMax: 2 }
const { sandbox, log } = openSandbox(limits)

const call = (called: SandboxFunction, items = ['[]']): Promise<readonly CallOutcome[]> => sandbox.call(called, items)
const codeOf = (promise: Promise<readonly CallOutcome[]>): Promise<string> => promise.then(
  ([outcome]) => String(outcome?.kind), (error: unknown) => error instanceof SandboxError ? error.code : String(error),
)

describe('a hostile function costs its own call an error and nothing else', function () {
  // Processes start and end slowly on a busy machine.
  this.timeout(30_000)
  after(() => sandbox.close())

  // The other database's calls run before, beside and after the attack.
  const neighbour = functionOf('n => n + 1', 'neighbour')
  async function attack(source: string, run = call): Promise<string> {
    expect(await call(neighbour, ['[1]'])).to.deep.equal([{ kind: 'value', json: '2' }])
    const outcome = codeOf(run(functionOf(source, 'hostile')))
    const beside = await Promise.all(Array.from({ length: 10 }, (_, n) => call(neighbour, [`[${n}]`])))
    expect(beside.flat()).to.deep.equal(Array.from({ length: 10 }, (_, n) => ({ kind: 'value', json: `${n + 1}` })))
    const code = await outcome
    expect(await call(neighbour, ['[2]'])).to.deep.equal([{ kind: 'value', json: '3' }])
    // The attacker's other functions go on as well.
    expect(await call(functionOf('() => 7', 'hostile'))).to.deep.equal([{ kind: 'value', json: '7' }])
    return code
  }

  // Collecting garbage below the limit may take longer than the call may take.
  const exhaustion = ['memory', 'crashed', 'timeout'] as const
  const attacks: Readonly<Record<string, readonly [source: string, ...codes: string[]]>> = {
    'an endless loop': ['() => { for (;;); }', 'timeout'],
    'an endless loop outside of the function': ['(() => { for (;;); })()', 'timeout'],
    'an endless chain of microtasks': [
      '() => { const again = () => Promise.resolve().then(again); again(); }', ...exhaustion,
    ],
    'a pattern that backtracks': ['() => /^(a+)+$/.test("a".repeat(60) + "!")', 'timeout'],
    'a BigInt power, which no time limit of V8 interrupts': ['() => String(2n ** (2n ** 28n)).length', 'timeout'],
    'a flood of objects': ['() => { const all = []; for (;;) all.push({}); }', ...exhaustion],
    'a flood of long strings': [
      '() => { const all = []; for (let n = 0; ; n++) all.push(("x" + n).repeat(1e6).split("").join("-")); }',
      ...exhaustion,
    ],
    'a flood of typed arrays': [
      '() => { const all = []; for (;;) all.push(new Uint8Array(1e6).fill(1)); }', 'error',
    ],
    'a flood of map entries': ['() => { const all = new Map(); for (let n = 0; ; n++) all.set(n, n); }', ...exhaustion],
    'an endless loop in what it returns': ['() => ({ toJSON() { for (;;); } })', 'timeout'],
    'an endless recursion': ['() => { const deeper = n => deeper(n + 1) + 1; return deeper(0) }', 'error'],
    'an endless recursion in what it throws': [
      '() => { const deeper = () => deeper(); throw { toJSON: deeper } }', 'error',
    ],
    'a rejection that nobody handles': ['() => { Promise.reject(new Error("unhandled")); return 1 }', 'crashed'],
    'an error whose members throw': [
      '() => { throw Object.defineProperty(new Error("x"), "message", { get() { throw 1 } }) }', 'error',
    ],
    'a proxy that throws': ['() => { throw new Proxy({}, { getPrototypeOf() { throw 1 } }) }', 'error'],
    'a very long message': ['() => { throw new Error("x".repeat(1e6)) }', 'error'],
    'an array of a huge length': ['() => new Array(2 ** 32 - 2).fill(1).length', ...exhaustion],
  }
  for (const [name, [source, ...codes]] of Object.entries(attacks)) {
    it(name, async () => {
      expect(codes).to.include(await attack(source))
    })
  }

  // Design documents are compiled when they are saved, and the client waits.
  const sources: Readonly<Record<string, readonly [source: string, ...codes: string[]]>> = {
    'an endless loop': ['for (;;); function () {}', 'timeout'],
    'a flood of objects': ['const all = []; for (;;) all.push({}); function () {}', ...exhaustion],
    'a rejection that nobody handles': ['Promise.reject(1); function () {}', 'compilation', 'crashed'],
    '8 MB of brackets': ['['.repeat(8e6), 'compilation', ...exhaustion],
    '8 MB of statements': [`${'x = 1;'.repeat(1.3e6)} function () {}`, 'none', ...exhaustion],
    '8 MB of anonymous functions': ['function () {}\n'.repeat(5e5), 'compilation', ...exhaustion],
  }
  for (const [name, [source, ...codes]] of Object.entries(sources)) {
    it(`when it is compiled: ${name}`, async () => {
      const outcome = sandbox.compile(functionOf(source, 'hostile')).then(
        () => 'none', (error: unknown) => error instanceof SandboxError ? error.code : String(error))
      expect(await call(neighbour, ['[1]'])).to.deep.equal([{ kind: 'value', json: '2' }])
      expect(codes).to.include(await outcome)
      await sandbox.compile(functionOf('() => 7', 'hostile'))
    })
  }

  it('when it is compiled: a very long message', async () => {
    const error = await sandbox.compile(functionOf('throw new Error("x".repeat(1e6))', 'hostile')).then(
      () => undefined, (thrown: unknown) => thrown)
    expect(error).to.be.instanceOf(SandboxError)
    const { code, message } = error as SandboxError
    expect([code, message]).to.deep.equal(['compilation', `Error: ${'x'.repeat(1993)}`])
  })

  const responses: Readonly<Record<string, readonly [source: string, ...codes: string[]]>> = {
    'an endless send': ['() => { for (;;) { try { send("x".repeat(1e6)) } catch {} } }', 'timeout'],
    'a send of a huge text': ['() => { send("x".repeat(2 ** 29 - 24)) }', 'too_large', ...exhaustion],
    'an endless send of small texts': ['() => { for (;;) send("x") }', 'too_large', ...exhaustion],
    'an endless loop in what it sends': ['() => { send({ toString() { for (;;); } }) }', 'timeout'],
    'an endless reading behind the last row': ['() => { while (getRow() === null); }', 'timeout'],
    'an endless loop in what it provides': ['() => { provides("html", () => { for (;;); }) }', 'timeout'],
    'a flood of formats': ['() => { for (;;) provides("html", () => {}) }', ...exhaustion],
    'a flood of types': ['() => { for (let n = 0; ; n++) registerType("x" + n, "text/x") }', ...exhaustion],
    'a list function that calls itself without end': [
      'function f() { provides("html", () => f()); return f() }', 'error', ...exhaustion,
    ],
    'headers that are a proxy': [
      '() => { start({ headers: new Proxy({}, { ownKeys() { throw new Error("keys") } }) }) }', 'error',
    ],
  }
  for (const [name, [source, ...codes]] of Object.entries(responses)) {
    it(`in a show or list function: ${name}`, async () => {
      const run = async (called: SandboxFunction) => [await sandbox.respond(called, { argumentList: '[{},{}]' })]
      expect(codes).to.include(await attack(source, run))
    })
  }

  it('many at once, from many databases', async () => {
    const hostile = Array.from({ length: 2 }, (_, n) => codeOf(call(functionOf('() => { for (;;); }', `hostile${n}`))))
    const innocent = Array.from({ length: 20 }, (_, n) => call(functionOf('n => n', `innocent${n}`), [`[${n}]`]))
    expect((await Promise.all(innocent)).flat()).to.deep.equal(
      innocent.map((_, n) => ({ kind: 'value', json: `${n}` })))
    expect(await Promise.all(hostile)).to.deep.equal(hostile.map(() => 'timeout'))
  })

  it('beside other calls of its database, which run once more', async () => {
    const hostile = codeOf(call(functionOf('() => { for (;;); }', 'mixed')))
    const others = Array.from({ length: 5 }, (_, n) => call(functionOf('n => n', 'mixed', `_design/${n}`), [`[${n}]`]))
    expect((await Promise.all(others)).flat().map(outcome => 'json' in outcome && outcome.json))
      .to.deep.equal(['0', '1', '2', '3', '4'])
    expect(await hostile).to.equal('timeout')
  })

  it('and its lines in the log are short, even if it changes how texts are cut', async () => {
    const source = '() => { String.prototype.slice = function () { return `${this}` }; log("x".repeat(1e6)) }'
    await call(functionOf(source, 'verbose'))
    const written = log.lines.filter(({ fields }) => fields['database'] === 'verbose')
    expect(written.map(({ fields }) => (fields['line'] as string).length)).to.deep.equal([1000])
  })

  it('and is reported in the log', async () => {
    await codeOf(call(functionOf('() => { for (;;); }', 'loops', '_design/endless')))
    expect(log.lines.at(-1)).to.deep.include({
      level: 'warn', fields: { reason: 'timeout', database: 'loops', designDocuments: ['_design/endless'] },
    })
  })
})

describe('a function reaches nothing outside of its isolate', () => {
  after(() => sandbox.close())
  const { sandbox: opened } = openSandbox(limits)
  after(() => opened.close())
  const valueOf = async (called: SandboxFunction): Promise<string> => {
    const [outcome] = await opened.call(called, ['[]'])
    if (outcome === undefined || outcome.kind === 'thrown') throw new Error('no value')
    return outcome.kind === 'value' ? outcome.json : outcome.message
  }

  const attempts: Readonly<Record<string, readonly [source: string, result: RegExp]>> = {
    'no process': ['() => process.env', /process is not defined/],
    'no process through constructors': [
      '() => this.constructor.constructor("return process")()', /^EvalError/,
    ],
    'no process through the function that calls it': ['function f() { return f.caller }', /^null$/],
    'no process through the globals': [
      '() => [emit, log, require, sum].map(f => f.constructor === Function && f instanceof Function).join()',
      /^"true,true,true,true"$/,
    ],
    'no process through an error of the host': [
      `() => {
        try { (function deep() { deep() })() } catch (e) { return e.constructor.constructor("return typeof process")() }
      }`, /^EvalError/,
    ],
    'no stack of the host': [
      `() => {
        const isOwn = frame => (frame.getFunction() ?? emit).constructor === Function
        Error.prepareStackTrace = (error, frames) => frames.map(isOwn)
        return new Error().stack
      }`, /^\[true(,true)*\]$/,
    ],
    'no modules of Node.js': ['() => require("node:fs")', /has no module 'node:fs'/],
    'no modules of Node.js by a path': ['() => require("/../../proc/self/environ")', /has no module/],
    'no isolated-vm': ['() => typeof ivm + typeof _ivm + typeof isolate', /^"undefinedundefinedundefined"$/],
  }
  for (const [name, [source, result]] of Object.entries(attempts)) {
    it(name, async () => expect(await valueOf(functionOf(source))).to.match(result))
  }

  it('no modules by import()', async () => {
    const importing = functionOf(`() => {
      import("node:fs").then(() => { globalThis.imported = true }, () => {})
      return typeof globalThis.imported
    }`)
    await valueOf(importing)
    expect(await valueOf(importing)).to.equal('"undefined"')
    expect(await codeOfImport()).to.equal('compilation')
  })
  const codeOfImport = () => opened.compile(functionOf('import fs from "node:fs"; () => fs'))
    .then(() => 'no error', (error: SandboxError) => error.code)

  it('no globals of another database, design document or function', async () => {
    await valueOf(functionOf('() => { globalThis.secret = 1 }', 'owner', '_design/a'))
    expect(await valueOf(functionOf('() => typeof secret', 'owner', '_design/a'))).to.equal('"undefined"')
    expect(await valueOf(functionOf('() => typeof secret', 'owner', '_design/b'))).to.equal('"undefined"')
    expect(await valueOf(functionOf('() => typeof secret', 'other', '_design/a'))).to.equal('"undefined"')
  })

  it('no process through the globals of show and list functions, nor through the request', async () => {
    const source = `(doc, req) => {
      const seen = [provides, registerType, start, send, getRow, req.constructor, req.headers, this, getRow()]
      return seen.map(each => each.constructor.constructor === Function).join()
    }`
    const given = { argumentList: '[null,{"headers":{},"__proto__":{"polluted":true}}]', rows: ['{}'] }
    const outcome = await opened.respond(functionOf(source), given)
    expect(outcome).to.deep.include({ kind: 'value' })
    expect('json' in outcome && JSON.parse(outcome.json)).to.deep.equal({
      headers: {}, body: Array(9).fill('true').join(),
    })
  })

  it('no rows, formats or parts of another call', async () => {
    const keeper = functionOf(`keeping => {
      if (keeping) globalThis.kept = [send, getRow]
      else if (!globalThis.kept) return "replaced"
      kept[0](keeping ? "mine" : "late")
      return String(kept[1]())
    }`, 'keeper')
    const callBoth = async () => {
      await opened.respond(keeper, { argumentList: '[true]', rows: ['"first"', '"second"'] })
      return opened.respond(keeper, { argumentList: '[false]', rows: ['"own"'] })
    }
    let outcome = await callBoth()
    // On a busy machine the isolate may have been replaced between the calls.
    for (let left = 5; left > 0 && 'json' in outcome && outcome.json.includes('replaced'); left--) {
      outcome = await callBoth()
    }
    expect(outcome).to.deep.equal({ kind: 'value', json: '{"headers":{},"body":"lateown"}' })
    expect((await opened.call(keeper, ['[false]']))[0]).to.deep.include({ kind: 'error' })
  })

  it('no other functions by changing what is shared', async () => {
    const spoil = `() => {
      JSON.parse = JSON.stringify = () => "spoiled"
      Array.prototype.push = Array.prototype.slice = String.prototype.split = () => { throw "spoiled" }
      Object.prototype.toJSON = () => ({ kind: 7 })
      Object.prototype.then = () => {}
      Object.defineProperty(Array.prototype, "0", { set() { throw "spoiled" }, get: () => "spoiled" })
      Function.prototype.apply = Reflect.apply = () => "spoiled"
      RegExp.prototype.exec = () => { throw "spoiled" }
      Object.setPrototypeOf(Error.prototype, null)
      globalThis.emit = globalThis.eval = globalThis.Error = undefined
      throw { kind: 1 }
    }`
    await opened.call(functionOf(spoil, 'spoiled'), ['[]'])
    const rows = await opened.map(functionOf('doc => emit(doc.n)', 'clean'), ['{"n":1}'])
    expect(rows).to.deep.equal([{ kind: 'rows', rows: [{ key: '1', value: 'null' }] }])
    // What it does to its own design document are errors or odd values of that document's calls.
    const own = await opened.map(functionOf('doc => { throw new TypeError("x") }', 'spoiled'), ['{}', '{}'])
    expect(own).to.have.length(2)
    const given = { argumentList: '[null,{}]', rows: ['1'] }
    const source = '() => { provides("html", getRow) }'
    expect(await opened.respond(functionOf(source, 'spoiled'), given)).to.have.property('kind')
    expect(await opened.respond(functionOf(source, 'clean'), given)).to.deep.equal({
      kind: 'value', json: '{"headers":{"Content-Type":"text/html; charset=utf-8"},"body":"1"}',
    })
  })
})
