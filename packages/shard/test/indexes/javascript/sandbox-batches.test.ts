import assert from 'node:assert/strict'
import { SandboxError, type SandboxErrorCode } from '@sectional/runtime'
import { batchBytesMax, callInBatches } from '../../../src/indexes/javascript/sandbox-batches.ts'

const ids = Array.from({ length: 600 }, (_, at) => String(at))

describe('calls of the sandbox in batches', () => {
  for (const code of ['timeout', 'memory', 'crashed', 'too_large'] as const) {
    it(`are made for each item alone when one of a batch causes ${code}`, async () => {
      const { outcomes } = await callInBatches(ids, batch => {
        if (batch.includes('77') || batch.includes('500')) throw new SandboxError(code, 'of a test')
        return Promise.resolve(batch)
      })
      const failed = outcomes.flatMap((outcome, at) => outcome instanceof SandboxError ? [at] : [])
      assert.deepEqual(failed, [77, 500])
      assert.deepEqual(outcomes.filter(outcome => typeof outcome === 'string'),
        ids.filter(id => id !== '77' && id !== '500'))
    })
  }

  it('fail no item when only the batch takes too long', async () => {
    const { outcomes } = await callInBatches(ids, batch => {
      if (batch.length > 1) throw new SandboxError('timeout', 'of a test')
      return Promise.resolve(batch)
    })
    assert.deepEqual(outcomes, ids)
  })

  for (const code of ['compilation', 'unsupported', 'overloaded', 'closed'] as const satisfies SandboxErrorCode[]) {
    it(`end with ${code}, which no item has caused`, async () => {
      let calls = 0
      await assert.rejects(callInBatches(ids, () => {
        calls++
        throw new SandboxError(code, 'of a test', { line: 3, column: 4, module: null })
      }), { name: 'ReplicaError', code, message: 'of a test (line 3, column 4)' })
      assert.equal(calls, 1)
    })
  }

  it('end with any other error as it is', async () => {
    const error = new TypeError('a mistake')
    await assert.rejects(callInBatches(ids, () => { throw error }), thrown => thrown === error)
  })

  it('end when too many items fail alone, so that an endless function does not occupy the node for days', async () => {
    let calls = 0
    const { outcomes, exhausted } = await callInBatches(ids, () => {
      calls++
      throw new SandboxError('timeout', 'The function took longer than 5000 ms')
    })
    assert.equal(exhausted?.code, 'exhausted')
    assert.equal(exhausted.message,
      'The function failed for 10 documents or lists of values: The function took longer than 5000 ms')
    assert.equal(outcomes.length, 10)
    assert.equal(calls, 11)
  })

  it('contain so many bytes at most, and one item more', async () => {
    const large = 'x'.repeat(batchBytesMax / 2)
    const sizes: number[] = []
    await callInBatches([large, large, large, 'x', large, large], batch => {
      sizes.push(batch.length)
      return Promise.resolve(batch)
    })
    assert.deepEqual(sizes, [2, 3, 1])
  })

  it('end when the signal aborts', async () => {
    const ended = new AbortController()
    await assert.rejects(callInBatches(ids, batch => {
      ended.abort()
      return Promise.resolve(batch)
    }, ended.signal), { code: 'cancelled' })
  })
})
