import { expect } from 'chai'
import { applyCommand, initialState } from '../../src/control/state-machine.ts'
import {
  confirmedStart, hasAnotherLog, isInDoubt, isLate, isOutdated, nextStart, recordStart, unconfirmedStartsMax,
} from '../../src/control/node-start.ts'

describe('starts of a node', () => {
  it('are current while the newest recorded one is among those that the data directory knows', () => {
    const first = nextStart(undefined, 'a')
    const recorded = recordStart(undefined, first, 5)
    expect(isOutdated(undefined, first)).to.equal(false)
    expect(isOutdated(recorded, first)).to.equal(false)
    // The process ended before it saw that the log had recorded its start.
    expect(isOutdated(recorded, nextStart(first, 'b'))).to.equal(false)
    const confirmed = confirmedStart(first, recorded)!
    expect(confirmed).to.deep.equal({ ids: ['a'], confirmed: 5 })
    expect(confirmedStart(confirmed, recorded)).to.equal(null)
    expect(isOutdated(recorded, nextStart(confirmed, 'b'))).to.equal(false)
  })

  it('are outdated when another one was recorded after the copy was made, until the node is admitted anew', () => {
    const copy = confirmedStart(nextStart(undefined, 'a'), recordStart(undefined, nextStart(undefined, 'a'), 5))!
    const recorded = recordStart(recordStart(undefined, copy, 5), nextStart(copy, 'b'), 9)
    const restored = nextStart(copy, 'c')
    expect(isOutdated(recorded, restored)).to.equal(true)
    const known = recordStart(recorded, undefined, 11)
    for (const start of [restored, nextStart(restored, 'd'), nextStart(copy, 'b')]) {
      expect(isOutdated(known, start)).to.equal(true)
    }
    expect(isOutdated(recordStart(known, nextStart(undefined, 'e'), 14), nextStart(undefined, 'e'))).to.equal(false)
  })

  it('are not outdated for a peer whose own metadata is older', () => {
    expect(isOutdated({ id: 'a', index: 5, former: [] }, { ids: ['c'], confirmed: 9 })).to.equal(false)
  })

  it('belong to another log when they were recorded where this one has recorded none', () => {
    const recorded = { id: 'a', index: 5, former: [] }
    expect(hasAnotherLog(recorded, { ids: ['c'], confirmed: 9 }, 9)).to.equal(true)
    // The other log is older than this one, or the same.
    expect(hasAnotherLog(recorded, { ids: ['c'], confirmed: 9 }, 8)).to.equal(false)
    expect(hasAnotherLog(recorded, { ids: ['b', 'a'], confirmed: 5 }, 9)).to.equal(false)
    expect(hasAnotherLog(recorded, { ids: ['b', 'a'], confirmed: 0 }, 9)).to.equal(false)
    expect(hasAnotherLog(undefined, { ids: ['c'], confirmed: 9 }, 9)).to.equal(false)
    expect(hasAnotherLog(recorded, undefined, 9)).to.equal(false)
  })

  it('are not in doubt before any log has confirmed them: the node joined anew with an empty disk', () => {
    const formerMembership = { id: 'a', index: 42, former: [] }
    const joined = nextStart(undefined, 'b')
    expect(isInDoubt(formerMembership, joined, 60)).to.equal(false)
    expect(isInDoubt(formerMembership, { ids: ['b'], confirmed: 64 }, 60)).to.equal(false)
    expect(isInDoubt(formerMembership, { ids: ['b'], confirmed: 41 }, 60)).to.equal(true)
    expect(isInDoubt(formerMembership, { ids: ['b'], confirmed: 64 }, 64)).to.equal(true)
    expect(isInDoubt(formerMembership, undefined, 60)).to.equal(false)
  })

  it('are late when the node has announced another one since', () => {
    const first = nextStart(undefined, 'a')
    const second = nextStart({ ids: ['a'], confirmed: 5 }, 'b')
    const third = nextStart(second, 'c')
    const recorded = recordStart(recordStart(undefined, first, 5), third, 9)
    expect([first, second, third].map(start => isLate(recorded, start))).to.deep.equal([true, true, false])
  })

  it('do not count as the newest when the request of an earlier process to join comes late', () => {
    const first = nextStart(undefined, 'a')
    const second = nextStart(first, 'b')
    const join = (start: typeof first, id: string) => ({
      type: 'admit-node' as const, node: 'n', address: 'n:1', zone: null, fresh: true, start, id,
    })
    const admitted =
      applyCommand(applyCommand(initialState('c'), 1, join(first, 'x')).state, 2, join(second, 'y')).state
    const late = applyCommand(admitted, 3, join(first, 'z'))
    expect(late.result).to.deep.equal({ kind: 'later' })
    expect(late.state.nodes).to.deep.equal(admitted.nodes)
    expect(isOutdated(late.state.nodes['n']?.start, second)).to.equal(false)
  })

  it('are no longer late when the data directory is known to be given up', () => {
    const recorded = recordStart(recordStart(undefined, nextStart(undefined, 'a'), 5), nextStart(undefined, 'b'), 6)
    expect(isLate(recorded, nextStart(undefined, 'a'))).to.equal(true)
    const given = recordStart(recorded, undefined, 7)
    expect([isLate(given, nextStart(undefined, 'a')), isOutdated(given, nextStart(undefined, 'a'))]).to.deep.equal([
      false, true,
    ])
  })

  it('are kept in bounded number', () => {
    let start = nextStart(undefined, 'a')
    for (let at = 0; at < 100; at += 1) start = nextStart(start, String(at))
    expect(start.ids.length).to.equal(unconfirmedStartsMax)
    expect(start.ids[0]).to.equal('99')
  })
})
