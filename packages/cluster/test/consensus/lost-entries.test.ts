import type { LogEntry } from '@sectional/core'
import { expect } from 'chai'
import { RaftCore } from '../../src/consensus/raft-core.ts'
import { RaftLog } from '../../src/consensus/raft-log.ts'
import { defaultRaftOptions } from '../../src/consensus/raft-work.ts'

const configuration = { voters: ['a', 'b', 'c'], learners: [] }
const none = new Uint8Array(0)

function entry(index: number, term: number): LogEntry {
  return { index, term, kind: 'noop', payload: none }
}

/** Node a as a follower with four entries of term 2, three of which are committed. */
function follower(): RaftCore {
  const snapshot = { index: 0, term: 0, configuration, state: none, checksum: 0 }
  const log = new RaftLog(0, 0, [1, 2, 3, 4].map(index => entry(index, 2)))
  const hardState = { term: 2, vote: null, commit: 3 }
  return new RaftCore({ id: 'a', hardState, snapshot, log, options: defaultRaftOptions, random: () => 0 })
}

/** The same node after it won the election of term 3. */
function leader(): RaftCore {
  const core = follower()
  while (core.role === 'follower') core.tick()
  core.step({ type: 'vote-reply', from: 'b', to: 'a', term: 3, granted: true, preVote: true })
  core.persisted(core.takeWork())
  core.step({ type: 'vote-reply', from: 'b', to: 'a', term: 3, granted: true, preVote: false })
  expect([core.role, core.log.lastIndex]).to.deep.equal(['leader', 5])
  return core
}

describe('after a majority of voters has lost entries', () => {
  const emptyPiece = { state: none, offset: 0, totalBytes: 0, checksum: 0 }
  const snapshot = { type: 'snapshot', from: 'b', to: 'a', term: 3, round: 1 } as const
  const append = { type: 'append', from: 'b', to: 'a', term: 3, round: 1, commit: 1 } as const
  const next = { ...append, previousIndex: 3, previousTerm: 2, entries: [entry(4, 3)] }

  it('a follower refuses a leader whose entry differs from a committed one', () => {
    for (const message of [
      { ...append, previousIndex: 2, previousTerm: 2, entries: [entry(3, 3)] },
      { ...append, previousIndex: 3, previousTerm: 3, entries: [entry(4, 3)] },
      { ...append, previousIndex: 3, previousTerm: 3, entries: [] },
      { ...snapshot, index: 3, snapshotTerm: 3, configuration, ...emptyPiece },
    ]) expect(() => follower().step(message)).to.throw('b leads without entry 3 of the metadata log')
  })

  it('a follower gives up entries that were not committed', () => {
    const core = follower()
    core.step(next)
    expect([core.leader, core.log.term(4)]).to.deep.equal(['b', 3])
  })

  it('a leader stops when a follower has more entries than it has', () => {
    const answer = { type: 'append-reply', from: 'b', to: 'a', term: 3, round: 1 } as const
    const reply = { ...answer, success: true, conflictIndex: 0 }
    leader().step({ ...reply, matchIndex: 5 })
    expect(() => leader().step({ ...reply, matchIndex: 6 })).to.throw('b has the metadata log up to 6')
  })

  it('a leader whose disk is in doubt is neither followed nor voted for, and reported until another leads', () => {
    const core = follower()
    core.step(next, true)
    const request = { type: 'vote-request', from: 'b', to: 'a', term: 3, preVote: false } as const
    core.step({ ...request, lastIndex: 9, lastTerm: 3 }, true)
    expect([core.leader, core.term, core.log.term(4), core.ignoredLeader]).to.deep.equal([null, 2, 2, 'b'])
    core.step({ ...next, from: 'c' })
    expect([core.leader, core.ignoredLeader]).to.deep.equal(['c', null])
  })

  it('a leader does not take the refusal of a message of an earlier term for a loss or for an answer to a read', () => {
    const candidate = follower()
    while (candidate.role === 'follower') candidate.tick()
    candidate.step({ type: 'vote-reply', from: 'b', to: 'a', term: 3, granted: true, preVote: true })
    candidate.takeWork()
    candidate.step({ ...append, term: 2, round: 40, previousIndex: 4, previousTerm: 2, entries: [] })
    const [refusal] = candidate.takeWork().messagesAfterPersist

    const core = leader()
    const work = core.takeWork()
    core.persisted(work)
    const round = Math.max(...work.messages.map(message => message.type === 'append' ? message.round : 0))
    core.step({
      type: 'append-reply', from: 'c', to: 'a', term: 3, round, success: true, matchIndex: 5, conflictIndex: 0,
    })
    expect(core.commit).to.equal(5)
    core.readIndex(1)
    core.step({ ...refusal!, from: 'b', to: 'a' })
    expect(refusal).to.include({ type: 'append-reply', term: 3, success: false })
    expect([core.wentBack(), core.takeWork().reads]).to.deep.equal([[], []])
  })
})
