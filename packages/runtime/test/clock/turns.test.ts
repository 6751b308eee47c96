import { expect } from 'chai'
import { ManualClock, Turns } from '../../src/index.ts'

/** A clock that advances at each reading, as if work took that time. */
class WorkingClock extends ManualClock {
  workedMs = 0

  override monotonic(): number { return this.workedMs }
}

describe('turns', () => {
  let clock: WorkingClock
  let turns: Turns
  beforeEach(() => {
    clock = new WorkingClock()
    turns = new Turns(clock)
  })

  /** Work of the given number of milliseconds in pieces of one millisecond. */
  function* work(pieces: number, log: string[] = [], name = ''): Generator<void, number> {
    for (let piece = 0; piece < pieces; piece++) {
      clock.workedMs++
      log.push(name)
      yield
    }
    return pieces
  }

  /** The longest period of work between two turns of the event loop. */
  async function longest(running: Promise<unknown>): Promise<number> {
    let ended = false
    const mark = (): void => { ended = true }
    running.then(mark, mark)
    let longestMs = 0
    for (let before = clock.workedMs; !ended; before = clock.workedMs) {
      await new Promise(resolve => { setImmediate(resolve) })
      longestMs = Math.max(longestMs, clock.workedMs - before)
    }
    return longestMs
  }

  it('divide long work into slices with turns of the event loop in between', async () => {
    const running = turns.run(work(1000))
    expect(await longest(running)).to.be.at.most(20)
    expect(await running).to.equal(1000)
    expect(clock.workedMs).to.equal(1000)
  })

  it('keep a turn short however much work there is at once, and all work makes progress', async () => {
    const log: string[] = []
    const running = Promise.all(['a', 'b', 'c', 'd', 'e', 'f'].map(name => turns.run(work(100, log, name))))
    expect(await longest(running)).to.be.at.most(20)
    expect(log.indexOf('f')).to.be.lessThan(100)
  })

  it('give the results of work on many items in order', async () => {
    const items = Array.from({ length: 100 }, (_, index) => index)
    const running = turns.map(items, item => { clock.workedMs++; return item * 2 })
    expect(await longest(running)).to.be.at.most(20)
    expect(await running).to.deep.equal(items.map(item => item * 2))
  })

  it('divide work in the background into shorter slices, which other work does not wait for', async () => {
    const running = turns.background.run(work(100))
    expect(await longest(running)).to.be.at.most(3)
    const log: string[] = []
    const background = turns.background.run(work(100, log, 'background'))
    await turns.run(work(100, log, 'request'))
    expect(log.filter(name => name === 'background').length).to.be.within(5, 40)
    expect(await background).to.equal(100)
  })

  it('leave most of the time to requests while work in the background waits', async () => {
    const log: string[] = []
    let ended = false
    const background = turns.background.run(work(300, log, 'background')).then(() => { ended = true })
    // In each turn of the event loop, requests need half a millisecond.
    for (let turn = 0; turn < 400; turn++) {
      clock.workedMs += 0.5
      await new Promise(resolve => { setImmediate(resolve) })
    }
    const during = log.length
    expect(during).to.be.within(40, 80)
    expect([ended, turns.background.isBusy, turns.isBusy]).to.deep.equal([false, true, false])
    await background
    expect([log.length, turns.background.isBusy]).to.deep.equal([300, false])
  })

  it('rest no longer after the process has stood still', async () => {
    let worked = 0
    const background = turns.background.run((function* () {
      for (; worked < 20; worked++) {
        clock.workedMs += worked === 10 ? 10_000 : 0.5
        yield
      }
    })())
    for (let turn = 0; turn < 150; turn++) {
      clock.workedMs += 0.5
      await new Promise(resolve => { setImmediate(resolve) })
    }
    expect(worked).to.equal(20)
    await background
  })

  it('are not busy for longer than a moment after the last work in the background', async () => {
    const background = turns.background.run(work(30))
    for (let turn = 0; turn < 300; turn++) {
      clock.workedMs += 0.5
      await new Promise(resolve => { setImmediate(resolve) })
    }
    await background
    expect(turns.background.isBusy).to.equal(true)
    clock.workedMs += 1000
    expect(turns.background.isBusy).to.equal(false)
  })

  it('cost no turn while there is little to do', async () => {
    let turned = false
    setImmediate(() => { turned = true })
    await turns.run(work(3))
    await turns.pause()
    expect(turned).to.equal(false)
  })

  it('fail with the work', async () => {
    const failing = turns.run((function* () { yield; throw new Error('no') })())
    expect(await failing.catch((error: Error) => error.message)).to.equal('no')
  })
})
