import { expect } from 'chai'
import {
  defaultSandboxLimits, IsolateSandbox, MemoryLog, PrometheusMetrics, RealClock, type SandboxLimits,
} from '@sectional/runtime'
import { MemoryNode } from '../memory-node.ts'

const limits: SandboxLimits = { ...defaultSandboxLimits, callMs: 300, heapMiB: 16, residentMiB: 200, childrenMax: 2 }

describe('a hostile filter costs its feed an error', function () {
  // Processes start and end slowly on a busy machine.
  this.timeout(30_000)
  let node: MemoryNode
  let sandbox: IsolateSandbox

  before(async () => {
    const metrics = new PrometheusMetrics()
    sandbox = new IsolateSandbox({ clock: new RealClock(), log: new MemoryLog(), metrics, limits })
    node = new MemoryNode({ sandbox })
    await node.put('/db?q=1')
    const docs = Array.from({ length: 50 }, (_, n) => ({ _id: `d${n}`, n }))
    await node.post('/db/_bulk_docs', { docs })
    await node.put('/db/_design/good', { filters: { first: 'doc => doc.n < 3' } })
  })
  after(async () => {
    await node.stop()
    sandbox.close()
  })

  /** Uses a filter beside another one and beside document requests, and returns the error of its feed. */
  async function attack(source: string): Promise<string> {
    const { json } = await node.get('/db/_design/bad')
    await node.put('/db/_design/bad', { _rev: json._rev, filters: { f: source } })
    let isOver = false
    const attacked = node.get('/db/_changes?filter=bad/f').finally(() => { isOver = true })
    const good = node.get('/db/_changes?filter=good/first')
    expect((await node.get('/db/d1')).status).to.equal(200)
    expect(isOver).to.equal(false)
    expect((await good).json.results).to.have.length(3)
    const answer = await attacked
    expect(answer.status).to.equal(500)
    expect((await node.get('/db/_changes?filter=good/first')).json.results).to.have.length(3)
    return answer.json.error
  }

  it('an endless loop', async () => {
    expect(await attack('doc => { for (;;); }')).to.equal('timeout')
  })

  it('an endless loop for one of many documents', async () => {
    expect(await attack('doc => { if (doc.n === 40) for (;;); return true }')).to.equal('timeout')
  })

  it('a flood of memory', async () => {
    expect(await attack('doc => { const all = []; for (;;) all.push({}) }')).to.be.oneOf(['render_error', 'timeout'])
  })

  it('the end of its process', async () => {
    expect(await attack('doc => { Promise.reject(new Error("nobody handles this")); return doc.n !== 40 || doc.a.b }'))
      .to.equal('render_error')
  })

  it('built-in functions that it replaced', async () => {
    expect(await attack('doc => { JSON.stringify = () => "{}"; throw { toJSON: 1 } }')).to.equal('render_error')
  })
})
