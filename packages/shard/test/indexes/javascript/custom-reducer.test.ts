import assert from 'node:assert/strict'
import { decodeReduced, encodeViewRow } from '@sectional/core'
import { type CallOutcome, MemorySandbox, RealClock, Turns } from '@sectional/runtime'
import { CustomReducer } from '../../../src/indexes/javascript/custom-reducer.ts'
import { defaultReduceLimit } from '../../../src/indexes/javascript/reduce-limit.ts'
import { viewOf } from './javascript-world.ts'

/** Every call returns the same JSON. */
class AnsweringSandbox extends MemorySandbox {
  readonly #json: string

  constructor(json: string) {
    super()
    this.#json = json
  }

  override async call(): Promise<readonly CallOutcome[]> {
    return [{ kind: 'value', json: this.#json }]
  }
}

/** Counts the pieces into which work is divided. */
class CountedTurns extends Turns {
  pieces = 0

  override run<Result>(work: Generator<void, Result>): Promise<Result> {
    for (;;) {
      const step = work.next()
      if (step.done === true) return Promise.resolve(step.value)
      this.pieces++
    }
  }
}

describe('results of reduce functions', () => {
  async function reduced(json: string): Promise<{ readonly state: Uint8Array, readonly pieces: number }> {
    const turns = new CountedTurns(new RealClock())
    const reducer = new CustomReducer({
      sandbox: new AnsweringSandbox(json), database: 'db', turns,
      reduceLimit: { ...defaultReduceLimit, reduceLimit: 'false' },
    }, viewOf('', '() => 1'))
    const row = { id: 'd', key: '', number: 0, value: encodeViewRow('1', '1') }
    const [state] = await reducer.reduce([[row]])
    return { state: state!, pieces: turns.pieces }
  }

  it('are checked in slices when they are long', async () => {
    const json = `[${'{},'.repeat(500_000)}1]`
    const { state, pieces } = await reduced(json)
    assert.deepEqual(decodeReduced(state), { json })
    assert.ok(pieces > 20, `${pieces} pieces`)
  })

  it('are failures when they are no JSON', async () => {
    for (const json of ['[1', '1]', `[${'{},'.repeat(100_000)}1`, `[${'{},'.repeat(100_000)}1]]`]) {
      const { failure } = decodeReduced((await reduced(json)).state)
      assert.deepEqual(failure, { error: 'reduce_error', reason: 'The reduce function returned no JSON' })
    }
  })
})
