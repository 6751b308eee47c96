import { viewTrialLimits, type ChangeRow, type IndexDefinition } from '@sectional/core'
import { ManualClock, MemorySandbox, RealClock, SandboxError, Turns, type SandboxErrorCode } from '@sectional/runtime'
import { expect } from 'chai'
import type { MapParts } from '../../../src/indexes/javascript/javascript-functions.ts'
import { tryView } from '../../../src/indexes/javascript/view-trial.ts'
import { viewOf } from './javascript-world.ts'

const signal = new AbortController().signal
const documents = (count: number, body: object = {}): ChangeRow[] => Array.from({ length: count }, (_, at) => ({
  id: `d${String(at).padStart(4, '0')}`, sequence: at + 1,
  leaves: [{ revision: `1-${'a'.repeat(32)}`, deleted: false }],
  body: Buffer.from(JSON.stringify(body)), attachments: [],
}))

/** Functions that run in this process. Each call of a map function takes so many milliseconds. */
function partsOf(callMs = 0, failures: readonly (SandboxErrorCode | undefined)[] = []): MapParts {
  const clock = new ManualClock()
  const sandbox = new MemorySandbox()
  const left = [...failures]
  const { map } = sandbox
  sandbox.map = async (...called) => {
    await clock.advance(callMs)
    const code = left.shift()
    if (code !== undefined) throw new SandboxError(code, `failed: ${code}`)
    return map.apply(sandbox, called)
  }
  return { sandbox, clock, database: 'incarnation', turns: new Turns(new RealClock()) }
}

describe('a trial of a view', () => {
  it('stops when its time has passed', async () => {
    const trial = await tryView(partsOf(viewTrialLimits.mapMs / 4), viewOf('doc => emit(1)'), documents(10), signal)
    expect([trial.mapped, trial.stoppedBy, trial.rows.length]).to.deep.equal([4, 'time', 4])
    expect([trial.mapMs, trial.reduceMs]).to.deep.equal([viewTrialLimits.mapMs, 0])
  })

  it('stops when its rows have many bytes', async () => {
    const map = `doc => emit(1, 'x'.repeat(${viewTrialLimits.bytes / 4}))`
    const trial = await tryView(partsOf(), viewOf(map), documents(10), signal)
    expect([trial.mapped, trial.stoppedBy, trial.rows.length]).to.deep.equal([4, 'bytes', 4])
  })

  it('describes some of the failures and lines, and counts all failures', async () => {
    const map = 'doc => { log(doc._id); throw new Error("no") }'
    const { mapped, failedCount, failures, logged } = await tryView(partsOf(), viewOf(map), documents(200), signal)
    expect([mapped, failedCount, failures.length, logged.length]).to.deep.equal([200, 200, 100, 100])
    expect(failures[1]).to.deep.equal({ id: 'd0001', error: 'Error: no', line: 1, column: 30, module: null })
    expect(logged[1]).to.deep.equal({ id: 'd0001', line: 'd0001' })
  })

  it('names the documents on which a function exceeds its limits', async () => {
    const parts = partsOf(0, [undefined, 'timeout', 'memory', 'crashed', 'too_large'])
    const { failures, rows } = await tryView(parts, viewOf('doc => emit(1)'), documents(6), signal)
    expect(failures.map(({ id, error }) => [id, error])).to.deep.equal([
      ['d0001', 'failed: timeout'], ['d0002', 'failed: memory'], ['d0003', 'failed: crashed'],
      ['d0004', 'failed: too_large'],
    ])
    expect(rows.map(({ id }) => id)).to.deep.equal(['d0000', 'd0005'])
  })

  it('describes a document whose row an index cannot have, without a position', async () => {
    const map = 'doc => emit(doc._id === "d0001" ? "x".repeat(2 ** 20) : 1)'
    const { failures, rows } = await tryView(partsOf(), viewOf(map), documents(3), signal)
    expect([failures.length, rows.length]).to.deep.equal([1, 2])
    const { error, ...place } = failures[0]!
    expect(error).to.match(/^A row cannot be indexed: The sort key/)
    expect(place).to.deep.equal({ id: 'd0001', line: null, column: null, module: null })
  })

  it('describes reductions that fail', async () => {
    const { reduced } = await tryView(partsOf(), viewOf('doc => emit(1, "text")', '_stats'), documents(2), signal)
    for (const way of ['direct', 'rereduced'] as const) {
      expect(reduced![way]).to.have.nested.property('failure.error', 'invalid_value')
    }
  })

  const refusals = {
    compilation: 'compilation_error', unsupported: 'not_implemented', overloaded: 'service unavailable',
    closed: 'service unavailable',
  }
  for (const [code, error] of Object.entries(refusals)) {
    it(`ends when the sandbox reports ${code}`, async () => {
      const parts = partsOf(0, [code as SandboxErrorCode])
      const failure = await tryView(parts, viewOf('doc => emit(1)'), documents(2), signal).catch(caught => caught)
      expect(failure.error).to.equal(error)
    })
  }

  it('orders rows as the view does', async () => {
    const map = 'doc => { emit("b"); emit("a"); emit("B") }'
    const keys = async (options: IndexDefinition['options']): Promise<readonly string[]> =>
      (await tryView(partsOf(), viewOf(map, null, options), documents(1), signal)).rows.map(({ key }) => key)
    expect(await keys({})).to.deep.equal(['"a"', '"b"', '"B"'])
    expect(await keys({ collation: 'raw' })).to.deep.equal(['"B"', '"a"', '"b"'])
  })

  it('ends when its client has gone', async () => {
    const gone = new AbortController()
    gone.abort()
    const trial = tryView(partsOf(), viewOf('doc => emit(1)'), documents(1), gone.signal)
    const failure = await trial.catch(caught => caught)
    expect(failure.name).to.equal('AbortError')
  })
})
