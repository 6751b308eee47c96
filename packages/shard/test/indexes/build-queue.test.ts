import { expect } from 'chai'
import { ManualClock } from '@sectional/runtime'
import { BuildQueue, type BuildTurn, slowBuildMs } from '../../src/indexes/build-queue.ts'

describe('the queue of builds', () => {
  const signal = new AbortController().signal
  let clock: ManualClock
  let queue: BuildQueue
  beforeEach(() => {
    clock = new ManualClock()
    queue = new BuildQueue(clock, 2, 10, 3)
  })

  /** Requests turns, and returns those that have begun. */
  function request(count: number, wasSlow = false): BuildTurn[] {
    const begun: BuildTurn[] = []
    for (let n = 0; n < count; n++) void queue.enter(signal, wasSlow).then(turn => begun.push(turn))
    return begun
  }

  it('lets others begin in place of builds that make no progress', async () => {
    const stuck = request(2)
    const others = request(1)
    await clock.advance(slowBuildMs - 1)
    expect([stuck.length, others.length]).to.deep.equal([2, 0])
    await clock.advance(1)
    expect(others.length).to.equal(1)
    expect(stuck.map(({ wasSlow }) => wasSlow)).to.deep.equal([true, true])
    expect([queue.running, queue.waiting]).to.deep.equal([3, 0])
  })

  it('counts builds that make progress', async () => {
    const working = request(2)
    const others = request(1)
    for (let n = 0; n < 5; n++) {
      await clock.advance(slowBuildMs - 1)
      for (const turn of working) turn.progressed()
    }
    expect(others.length).to.equal(0)
    working[0]!.leave()
    await clock.advance(0)
    expect(others.length).to.equal(1)
  })

  it('keeps builds that were slow before apart', async () => {
    const slow = request(5, true)
    const others = request(2)
    await clock.advance(0)
    expect([slow.length, others.length]).to.deep.equal([3, 2])
    slow[0]!.leave()
    await clock.advance(0)
    expect([slow.length, others.length]).to.deep.equal([4, 2])
  })

  it('counts a slow build again once it makes progress quickly', async () => {
    const [slow] = [request(1, true)]
    await clock.advance(slowBuildMs)
    slow[0]!.progressed()
    await clock.advance(1)
    const beside = request(2)
    await clock.advance(0)
    expect(beside.length).to.equal(2)
    slow[0]!.progressed()
    beside[0]!.leave()
    const next = request(1)
    await clock.advance(0)
    expect(next.length).to.equal(0)
    slow[0]!.leave()
    await clock.advance(0)
    expect(next.length).to.equal(1)
  })

  it('bounds slow builds, and gives their free places to builds that became slow', async () => {
    const slow = request(3, true)
    request(2)
    const others = request(1)
    await clock.advance(10 * slowBuildMs)
    expect(others.length).to.equal(0)
    slow[0]!.leave()
    await clock.advance(0)
    expect(others.length).to.equal(1)
    expect(queue.running).to.equal(5)
  })
})
