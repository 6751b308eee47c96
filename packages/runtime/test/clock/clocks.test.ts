import { expect } from 'chai'
import { ManualClock } from '../../src/clock/clock-manual.ts'
import { RealClock } from '../../src/clock/clock-real.ts'
import { RevocableClock } from '../../src/clock/clock-revocable.ts'
import { sleep } from '../../src/clock/clock.ts'

describe('ManualClock', () => {
  let clock: ManualClock
  let fired: string[]
  const note = (name: string) => () => { fired.push(`${clock.monotonic()}:${name}`) }
  beforeEach(() => {
    clock = new ManualClock(1000)
    fired = []
  })

  it('runs timers in the order in which they fall due, then in the order in which they were set', async () => {
    clock.setTimer(20, note('c'))
    clock.setTimer(10, note('a'))
    clock.setTimer(10, note('b'))
    clock.setTimer(31, note('later'))
    await clock.advance(30)
    expect(fired).to.deep.equal(['10:a', '10:b', '20:c'])
    expect([clock.now(), clock.monotonic(), clock.pendingTimers]).to.deep.equal([1030, 30, 1])
  })

  it('runs timers that timers and promises set on the way', async () => {
    clock.setTimer(10, () => { clock.setTimer(10, note('nested')) })
    void sleep(clock, 5).then(() => sleep(clock, 5)).then(note('slept'))
    clock.setImmediate(() => { clock.setTimer(1, note('immediate')) })
    await clock.advance(30)
    expect(fired).to.deep.equal(['1:immediate', '10:slept', '20:nested'])
  })

  it('forgets cancelled timers', async () => {
    clock.setTimer(10, note('cancelled')).cancel()
    await clock.advance(30)
    expect(fired).to.deep.equal([])
  })
})

describe('RevocableClock', () => {
  it('cancels the timers of one node and no others', async () => {
    const shared = new ManualClock()
    const fired: string[] = []
    const [one, two] = [new RevocableClock(shared), new RevocableClock(shared)]
    one.setTimer(5, () => fired.push('one'))
    one.setImmediate(() => fired.push('one at once'))
    two.setTimer(5, () => fired.push('two'))
    one.revoke()
    one.setTimer(5, () => fired.push('one after all'))
    await shared.advance(10)
    expect(fired).to.deep.equal(['two'])
    expect([one.pendingTimers, two.pendingTimers, shared.pendingTimers]).to.deep.equal([0, 0, 0])
  })
})

describe('RealClock', () => {
  it('calls back once the time has passed, unless cancelled', async () => {
    const clock = new RealClock()
    const before = clock.monotonic()
    const keepAlive = setTimeout(() => {}, 1000)
    clock.setTimer(1, () => expect.fail('a cancelled timer fired')).cancel()
    await new Promise<void>(resolve => { clock.setTimer(2, resolve) })
    await new Promise<void>(resolve => { clock.setImmediate(resolve) })
    clearTimeout(keepAlive)
    expect(clock.monotonic() - before).to.be.at.least(1)
    expect(clock.now()).to.be.greaterThan(Date.UTC(2025, 0, 1))
  })
})

describe('sleep', () => {
  it('ends when the signal aborts, and leaves no timer', async () => {
    const clock = new ManualClock()
    const controller = new AbortController()
    const sleeping = sleep(clock, 1000, controller.signal)
    controller.abort()
    await sleeping
    await sleep(clock, 1000, controller.signal)
    expect(clock.pendingTimers).to.equal(0)
  })
})
