import { expect } from 'chai'
import { PushSchedule } from '../../src/anti-entropy/push-schedule.ts'

const options = { pushQuietMs: 2, pushDelayMaxMs: 10, pushMissedMs: 1, periodicPassMs: 60_000 }

describe('push schedule', () => {
  it('waits for a quiet moment, but not for ever', () => {
    const schedule = new PushSchedule(options)
    schedule.committed('s', ['p'], 0)
    expect(schedule.takeDue(1)).to.deep.equal([])
    expect(schedule.takeDue(2)).to.deep.equal(['s'])
    expect(schedule.takeDue(3)).to.deep.equal([])
    for (let now = 3; now < 13; now++) {
      schedule.committed('s', ['p'], now)
      expect(schedule.takeDue(now), `at ${now}`).to.deep.equal([])
    }
    schedule.committed('s', ['p'], 13)
    expect(schedule.takeDue(13)).to.deep.equal(['s'])
  })

  it('pushes sooner to a peer that is known to lack something', () => {
    const schedule = new PushSchedule(options)
    schedule.confirm('s', 'p', schedule.begin('s', 0))
    expect(schedule.isCovered('s', 'p')).to.equal(true)
    schedule.missed('s', 'p', 0)
    expect(schedule.isCovered('s', 'p')).to.equal(false)
    expect(schedule.takeDue(1)).to.deep.equal(['s'])
  })

  it('pushes again after failures, at growing intervals until a push succeeds', () => {
    const schedule = new PushSchedule(options)
    const intervals = (count: number): number[] => Array.from({ length: count }, () => {
      schedule.failed('s', 'p', 0)
      let now = 0
      while (schedule.takeDue(now).length === 0) now++
      return now
    })
    expect(intervals(4)).to.deep.equal([1, 2, 4, 8])
    expect(intervals(20).at(-1)).to.equal(options.periodicPassMs)
    schedule.confirm('s', 'p', schedule.begin('s', 0))
    expect(intervals(2)).to.deep.equal([1, 2])
  })

  it('confirms by a pass only the changes that were committed before it began', () => {
    const schedule = new PushSchedule(options)
    schedule.committed('s', ['p', 'q'], 0)
    const start = schedule.begin('s', 5)
    schedule.committed('s', ['p', 'q'], 6)
    schedule.confirm('s', 'p', start)
    expect(schedule.isCovered('s', 'p')).to.equal(false)
    expect(schedule.lag(10)).to.deep.equal(new Map([['p', 5], ['q', 10]]))
    schedule.confirm('s', 'p', schedule.begin('s', 7))
    expect(schedule.isCovered('s', 'p')).to.equal(true)
    expect(schedule.lag(10).get('p')).to.equal(0)
  })

  it('does not know what a peer has after its link was closed', () => {
    const schedule = new PushSchedule(options)
    schedule.confirm('s', 'p', schedule.begin('s', 0))
    schedule.forgetPeer('p')
    expect(schedule.isCovered('s', 'p')).to.equal(false)
  })

  it('reports no lag of a node that has no replica of the shard any more', () => {
    const schedule = new PushSchedule(options)
    schedule.committed('s', ['p', 'q'], 0)
    schedule.committed('t', ['p'], 5)
    expect(schedule.lag(10)).to.deep.equal(new Map([['p', 10], ['q', 10]]))
    schedule.keepPeers('s', ['q', 'r'])
    expect(schedule.lag(10)).to.deep.equal(new Map([['p', 5], ['q', 10]]))
  })

  it('confirms nothing by a pass that began before the shard was dropped and came back', () => {
    const schedule = new PushSchedule(options)
    for (let now = 0; now < 3; now++) schedule.committed('s', ['p'], now)
    const start = schedule.begin('s', 3)
    schedule.forgetShard('s')
    schedule.committed('s', ['p'], 4)
    schedule.confirm('s', 'p', start)
    schedule.compared('s', 'p', start)
    expect(schedule.isCovered('s', 'p')).to.equal(false)
    expect(schedule.isCompared('s', 'p')).to.equal(false)
  })
})
