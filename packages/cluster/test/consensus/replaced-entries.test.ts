import type { LogEntry } from '@sectional/core'
import { expect } from 'chai'
import { RaftCore } from '../../src/consensus/raft-core.ts'
import { RaftLog } from '../../src/consensus/raft-log.ts'
import { defaultRaftOptions } from '../../src/consensus/raft-work.ts'

function entry(index: number, term: number): LogEntry {
  return { index, term, kind: 'noop', payload: new Uint8Array(0) }
}

describe('entries that were replaced while they were written', () => {
  it('do not count as a copy of the later entries at their places', () => {
    const configuration = { voters: ['a', 'b', 'c'], learners: [] }
    const snapshot = { index: 0, term: 0, configuration, state: new Uint8Array(0), checksum: 0 }
    const core = new RaftCore({
      id: 'a', hardState: { term: 1, vote: null, commit: 1 }, snapshot, log: new RaftLog(0, 0, [entry(1, 1)]),
      options: defaultRaftOptions, random: () => 0,
    })
    const append = { type: 'append', to: 'a', previousIndex: 1, previousTerm: 1, commit: 1, round: 1 } as const
    core.step({ ...append, from: 'b', term: 1, entries: [2, 3, 4].map(index => entry(index, 1)) })
    const replaced = core.takeWork()
    core.step({ ...append, from: 'c', term: 2, entries: [entry(2, 2)] })
    core.persisted(replaced)
    core.persisted(core.takeWork())
    while (core.role === 'follower') core.tick()
    for (const preVote of [true, false]) {
      core.step({ type: 'vote-reply', from: 'b', to: 'a', term: 3, granted: true, preVote })
      if (preVote) core.persisted(core.takeWork())
    }
    expect([core.role, core.log.lastIndex]).to.deep.equal(['leader', 3])
    const own = core.takeWork()
    const round = Math.max(...own.messages.map(message => 'round' in message ? message.round : 0))
    core.step({
      type: 'append-reply', from: 'b', to: 'a', term: 3, success: true, matchIndex: 3, conflictIndex: 0, round,
    })
    expect(core.commit, 'only b has entry 3 on its disk').to.equal(1)
    core.persisted(own)
    expect(core.commit).to.equal(3)
  })
})
