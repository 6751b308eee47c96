import { ManualClock } from '@sectional/runtime'
import { expect } from 'chai'
import { ReplicaCalls } from '../../src/calls/replica-calls.ts'

describe('scans of a replica', () => {
  it('are rejected after their timeout although a read of a page never ends', async () => {
    const clock = new ManualClock()
    const calls = new ReplicaCalls('history', clock, () => {})
    async function* scan(): AsyncGenerator<readonly number[]> {
      yield [1]
      await new Promise(() => {})
    }
    const pages = calls.pages({ timeoutMs: 1000 }, scan)
    expect((await pages.next()).value).to.deep.equal([1])
    let failure: unknown
    pages.next().catch((error: unknown) => { failure = error })
    await clock.advance(1000)
    expect(failure).to.include({ name: 'ReplicaError', code: 'timeout' })
  })
})
