import assert from 'node:assert/strict'
import {
  defaultSandboxLimits, IsolateSandbox, MemoryLog, PrometheusMetrics, RealClock, type SandboxLimits,
} from '@sectional/runtime'
import { JavaScriptWorld, viewOf } from './javascript-world.ts'

describe('views whose functions run in child processes', function () {
  this.timeout(60_000)
  let sandbox: IsolateSandbox
  let world: JavaScriptWorld

  async function open(limits: Partial<SandboxLimits> = {}, library?: string): Promise<void> {
    sandbox = new IsolateSandbox({
      clock: new RealClock(), log: new MemoryLog(), metrics: new PrometheusMetrics(), library,
      limits: { ...defaultSandboxLimits, childrenMax: 2, ...limits },
    })
    world = await JavaScriptWorld.open(sandbox)
  }

  afterEach(async () => {
    sandbox.close()
    await world.close()
  })

  it('leave out the documents on which a function does not end or needs too much memory', async () => {
    await open({ callMs: 1000, heapMiB: 16 })
    const numbers = [0, 1, 2, 3, 4, 5, 6, 7]
    await world.write(Object.fromEntries(numbers.map(n => [`d${n}`, { n }])))
    const view = viewOf(`function (doc) {
      if (doc.n === 2) for (;;);
      if (doc.n === 5) for (const kept = [];;) kept.push(new Array(1e5).fill(0))
      emit(doc.n % 2, doc.n)
    }`, 'function (keys, values) { return sum(values) }')
    assert.deepEqual(await world.groups(view, 'exact'), [[0, 0 + 4 + 6], [1, 1 + 3 + 7]])
    const { failures, rowCount } = await world.info(view)
    assert.equal(rowCount, 6)
    const errors = Object.fromEntries(failures.map(({ id, error }) => [id, error]))
    assert.deepEqual(Object.keys(errors).toSorted(), ['d2', 'd5'])
    assert.match(errors['d2']!, /took longer than 1000 ms/)
    assert.match(errors['d5']!, /memory/)
  })

  it('cannot be built on a machine without isolated-vm', async () => {
    await open({}, 'isolated-vm-of-another-machine')
    await world.write({ d: {} })
    await assert.rejects(world.build(viewOf('doc => emit(1, 1)')), { code: 'unsupported', message: /isolated-vm/ })
  })
})
