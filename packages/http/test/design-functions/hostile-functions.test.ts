import assert from 'node:assert/strict'
import {
  defaultSandboxLimits, IsolateSandbox, MemoryLog, PrometheusMetrics, RealClock, type SandboxLimits,
} from '@sectional/runtime'
import { MemoryNode, type Answer } from '../memory-node.ts'
import { MemoryViews } from '../views/memory-views.ts'

const limits: SandboxLimits = { ...defaultSandboxLimits, heapMiB: 16, residentMiB: 200, childrenMax: 2 }
const paths = { shows: '_show/f/x', lists: '_list/f/v', rewrites: '_rewrite/x' } as const

type Attack = (source: string, member?: keyof typeof paths) => Promise<readonly [status: number, error: string]>

/** Returns what calls a function beside show functions, and returns the status and the error of its answer. */
function attackWith(callMs: number): Attack {
  let node: MemoryNode
  let sandbox: IsolateSandbox
  before(async () => {
    sandbox = new IsolateSandbox({
      clock: new RealClock(), log: new MemoryLog(), metrics: new PrometheusMetrics(), limits: { ...limits, callMs },
    })
    node = new MemoryNode({ sandbox, wrap: parts => Object.assign(parts, new MemoryViews(parts)) })
    await node.put('/db')
    await node.put('/db/x', { n: 1 })
    await node.put('/db/_design/good', { shows: { f: 'doc => "n=" + doc.n' } })
  })
  after(async () => {
    await node.stop()
    sandbox.close()
  })
  return async (source, member = 'shows') => {
    const { json } = await node.get('/db/_design/bad')
    const functions = { [member]: member === 'rewrites' ? source : { f: source } }
    await node.put('/db/_design/bad', { _rev: json._rev, views: { v: { map: 'doc => emit(doc._id)' } }, ...functions })
    const good = (): Promise<Answer> => node.get('/db/_design/good/_show/f/x')
    const [answer, ...others] = await Promise.all([node.get(`/db/_design/bad/${paths[member]}`), good(), good()])
    for (const { status, text } of [...others, await good()]) assert.deepEqual([status, text], [200, 'n=1'])
    return [answer.status, answer.json?.error]
  }
}

describe('a hostile function costs its request an error', function () {
  // Processes start and end slowly on a busy machine.
  this.timeout(30_000)
  const attack = attackWith(300)
  /** For functions that must end for another reason than their time, also on a busy machine. */
  const slowAttack = attackWith(20_000)

  it('an endless loop', async () => {
    assert.deepEqual(await attack('() => { for (;;); }'), [500, 'timeout'])
  })

  it('an endless loop in what it returns', async () => {
    assert.deepEqual(await attack('() => ({ toJSON() { for (;;); } })'), [500, 'timeout'])
  })

  it('a body of 768 MiB', async () => {
    const source = '() => ({ body: "x".repeat(2 ** 29) + "x".repeat(2 ** 28) })'
    assert.deepEqual(await slowAttack(source), [500, 'render_error'])
  })

  it('a body that is longer than results may be', async () => {
    assert.deepEqual(await slowAttack('() => { let t = "x"; while (t.length < 4e6) t += t; return [t, t, t, t, t] }'),
      [500, 'render_error'])
  })

  it('a flood of memory', async () => {
    const [status, error] = await attack('() => { const all = []; for (;;) all.push({}) }')
    assert.equal(status, 500)
    assert(['render_error', 'timeout'].includes(error), error)
  })

  it('a result that is nested too deeply', async () => {
    const source = '() => { let v = 1; for (let n = 0; n < 1500; n++) v = [v]; return { json: v } }'
    assert.deepEqual(await slowAttack(source), [500, 'render_error'])
  })

  it('a header that would begin a second response', async () => {
    const source = '() => ({ headers: { "X-A": "b\\r\\n\\r\\nHTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n" } })'
    assert.deepEqual(await slowAttack(source), [500, 'render_error'])
  })

  it('a list function that sends without end', async () => {
    assert.deepEqual(await attack('() => { for (;;) { try { send("x".repeat(1e6)) } catch {} } }', 'lists'),
      [500, 'timeout'])
    assert.deepEqual(await slowAttack('() => { const t = "x".repeat(1e6); for (;;) send(t) }', 'lists'),
      [500, 'render_error'])
  })

  it('a list function that reads behind the last row without end', async () => {
    assert.deepEqual(await attack('() => { for (;;) getRow() }', 'lists'), [500, 'timeout'])
  })

  it('a list function that keeps every row many times', async () => {
    const source = '() => { const row = getRow(), all = []; for (;;) all.push(JSON.parse(JSON.stringify(row))) }'
    const [status, error] = await attack(source, 'lists')
    assert.equal(status, 500)
    assert(['render_error', 'timeout'].includes(error), error)
  })

  it('a list function that replaces what its globals use', async () => {
    const source = `() => {
      JSON.parse = String.prototype.slice = String.prototype.indexOf = () => { throw "replaced" }
      Object.prototype.code = 200
      return getRow().id
    }`
    assert.deepEqual(await slowAttack(source, 'lists'), [500, 'render_error'])
  })

  it('a rewrite function that does not end, and one that leads to itself', async () => {
    assert.deepEqual(await attack('() => { for (;;); }', 'rewrites'), [500, 'timeout'])
    assert.deepEqual(await slowAttack('() => "_rewrite/x"', 'rewrites'), [400, 'bad_request'])
  })
})
