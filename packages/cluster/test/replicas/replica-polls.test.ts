import { expect } from 'chai'
import { ManualClock } from '@sectional/runtime'
import { ReplicaPolls } from '../../src/replicas/replica-polls.ts'

const options = { pollIntervalMs: 100, pollRoundMs: 10, pollsPerRound: 2 }

describe('the polls of replicas', () => {
  it('that are too many for one round all follow in later ones, without another poll', async () => {
    const clock = new ManualClock()
    const polls = new ReplicaPolls(clock, options)
    const times: number[] = []
    for (let poll = 0; poll < 5; poll++) {
      void polls.turn(new AbortController().signal).then(() => { times.push(clock.monotonic()) })
    }
    await clock.advance(1000)
    expect(times).to.deep.equal([100, 100, 110, 110, 120])
    expect(clock.pendingTimers).to.equal(0)
  })

  it('that are requested later are due later', async () => {
    const clock = new ManualClock()
    const polls = new ReplicaPolls(clock, options)
    const times: number[] = []
    const poll = (): void => {
      void polls.turn(new AbortController().signal).then(() => { times.push(clock.monotonic()) })
    }
    poll()
    await clock.advance(50)
    poll()
    await clock.advance(1000)
    expect(times).to.deep.equal([100, 150])
    expect(clock.pendingTimers).to.equal(0)
  })

  it('end when their feeds end', async () => {
    const clock = new ManualClock()
    const polls = new ReplicaPolls(clock, options)
    const abort = new AbortController()
    const turns = [polls.turn(abort.signal), polls.turn(abort.signal)]
    abort.abort()
    await Promise.all([...turns, polls.turn(abort.signal)])
    expect(clock.pendingTimers).to.equal(0)
  })
})
