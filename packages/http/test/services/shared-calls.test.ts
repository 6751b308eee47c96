import assert from 'node:assert/strict'
import { SharedCalls } from '../../src/services/shared-calls.ts'

/** Calls whose ends the test decides. */
class Calls {
  readonly shared = new SharedCalls<number>()
  readonly begun: PromiseWithResolvers<number>[] = []

  share(key = 'db'): Promise<number> {
    return this.shared.share(key, () => {
      const call = Promise.withResolvers<number>()
      this.begun.push(call)
      return call.promise
    })
  }

  async end(index: number): Promise<void> {
    this.begun[index]!.resolve(index)
    await new Promise<void>(resolve => { setImmediate(resolve) })
  }
}

describe('shared calls', () => {
  it('give no request a result that is older than the request', async () => {
    const calls = new Calls()
    const results = [calls.share(), calls.share(), calls.share()]
    assert.equal(calls.begun.length, 1, 'one call runs at a time')
    await calls.end(0)
    assert.equal(calls.begun.length, 2)
    results.push(calls.share())
    await calls.end(1)
    await calls.end(2)
    assert.deepEqual(await Promise.all(results), [0, 1, 1, 2])
  })

  it('begin at once when none runs', async () => {
    const calls = new Calls()
    void calls.share()
    await calls.end(0)
    void calls.share()
    assert.equal(calls.begun.length, 2)
  })

  it('are separate for each key', () => {
    const calls = new Calls()
    void calls.share('a')
    void calls.share('b')
    assert.equal(calls.begun.length, 2)
  })

  it('go on after one that failed', async () => {
    const calls = new Calls()
    const first = calls.share()
    const second = calls.share()
    calls.begun[0]!.reject(new Error('failed'))
    await assert.rejects(first, /failed/)
    await calls.end(1)
    assert.equal(await second, 1)
  })
})
