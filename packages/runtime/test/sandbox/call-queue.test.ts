import { expect } from 'chai'
import { ManualClock } from '../../src/clock/clock-manual.ts'
import { CallHistory, type Lane } from '../../src/sandbox/call-history.ts'
import { CallQueue, type PendingCall } from '../../src/sandbox/call-queue.ts'
import { defaultSandboxLimits, SandboxError, type SandboxFunction } from '../../src/sandbox/sandbox.ts'
import { functionOf } from './test-sandbox.ts'

const KiB = 1024
const waitingBytesMax = 64 * KiB

function callOf(called: SandboxFunction, bytes: number, lane: Lane = 'ordinary'): PendingCall {
  return {
    called, kind: 'call', count: 1, items: Buffer.alloc(bytes), lane, retried: false, resolve: () => {},
    reject: () => {},
  }
}

describe('the queue of calls', () => {
  let queue: CallQueue
  beforeEach(() => { queue = new CallQueue({ ...defaultSandboxLimits, childrenMax: 1, waitingBytesMax }) })

  function isRefused(call: PendingCall): boolean {
    try {
      queue.add(call, true)
      return false
    } catch (error) {
      expect(error).to.be.instanceOf(SandboxError).with.property('code', 'overloaded')
      return true
    }
  }

  it('counts a large text once, however many calls have it, until the last of them has ended', () => {
    const large = { ...functionOf('x => x'), modules: 'x'.repeat(40 * KiB) }
    const other = { ...large, modules: 'y'.repeat(40 * KiB) }
    const calls = Array.from({ length: 10 }, () => callOf(large, KiB))
    expect(calls.map(isRefused)).to.deep.equal(calls.map(() => false))
    for (const call of queue.takeAll('ordinary')) {
      expect(isRefused(callOf(other, 0))).to.equal(true)
      queue.settle(call)
    }
    expect(isRefused(callOf(other, 0))).to.equal(false)
  })

  it('accepts calls of suspect functions of a database, whatever others have in the queue', () => {
    const calls = ['a', 'a', 'a', 'a', 'b', 'b', 'c', 'b'].map(database =>
      callOf(functionOf('x => x', database), 7 * KiB, 'suspect'))
    expect(calls.map(isRefused)).to.deep.equal([false, true, true, true, false, true, false, true])
    const small = ['d', 'd', 'd'].map(database => callOf(functionOf('x => x', database), KiB, 'suspect'))
    expect(small.map(isRefused)).to.deep.equal([false, true, true])
  })

  it('keeps the calls of a function that becomes suspect, although there is no room for their bytes', () => {
    const called = functionOf('x => x')
    for (let n = 0; n < 8; n++) queue.add(callOf(called, 7 * KiB), true)
    queue.suspect(called, () => { throw new Error('refused') })
    expect(queue.databases('ordinary')).to.deep.equal([])
    expect(queue.takeAll('suspect')).to.have.length(8)
  })

  it('releases each function whose time is up, also behind one that is still suspect', async () => {
    const clock = new ManualClock()
    const history = new CallHistory(clock, 1000)
    const [early, late] = ['x => 1', 'x => 2'].map(source => functionOf(source))
    const suspect = (called: SandboxFunction): void => {
      history.endedChild('db')
      history.endedChildBy(called)
    }
    suspect(early!)
    await clock.advance(30_000)
    suspect(late!)
    for (const called of [late!, early!, late!]) queue.add(callOf(called, 1, history.laneOf(called)), true)
    expect(queue.databases('ordinary')).to.deep.equal([])
    expect(history.forgetSuspects()).to.equal(false)
    await clock.advance(31_000)
    expect(history.forgetSuspects()).to.equal(true)
    queue.release(called => history.laneOf(called))
    expect(queue.take('ordinary', 'db', () => false).map(({ called }) => called)).to.deep.equal([early])
    expect(queue.takeAll('suspect').map(({ called }) => called)).to.deep.equal([late, late])
  })
})
