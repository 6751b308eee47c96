import { expect } from 'chai'
import { RaftCore } from '../../src/consensus/raft-core.ts'
import { RaftLog } from '../../src/consensus/raft-log.ts'
import { defaultRaftOptions } from '../../src/consensus/raft-work.ts'

describe('while the disk refuses writes, so that nobody takes the work of the consensus core', () => {
  let core: RaftCore

  beforeEach(() => {
    const configuration = { voters: ['a', 'b', 'c'], learners: [] }
    core = new RaftCore({
      id: 'a', hardState: { term: 1, vote: null, commit: 0 }, log: new RaftLog(0, 0, []),
      snapshot: { index: 0, term: 0, configuration, state: new Uint8Array(0), checksum: 0 },
      options: defaultRaftOptions, random: () => 0,
    })
  })

  it('the answers to a leader stay bounded, and the newest one is kept', () => {
    const rounds = 5000
    for (let round = 1; round <= rounds; round++) {
      core.step({
        type: 'append', from: 'b', to: 'a', term: 1, previousIndex: 0, previousTerm: 0, commit: 0, round, entries: [],
      })
    }
    const { messagesAfterPersist } = core.takeWork()
    expect(messagesAfterPersist.length).to.be.within(1, 1024)
    expect(messagesAfterPersist.at(-1)).to.include({ type: 'append-reply', round: rounds })
  })

  it('the refused reads stay bounded', () => {
    for (let id = 1; id <= 5000; id++) core.readIndex(id)
    expect(core.takeWork().reads.length).to.be.within(1, 1024)
  })
})
