import { expect } from 'chai'
import { Progress } from '../../src/consensus/progress.ts'

describe('what a leader knows about a follower', () => {
  it('ignores answers from an earlier membership of the same name', () => {
    const progress = new Progress(11, 7, true)
    expect(progress.answered(6, 10)).to.equal(false)
    expect(progress.round).to.equal(6)
    expect(progress.answered(7, 0)).to.equal(true)
  })

  it('takes a commit index as known only when the answer shows that the log reaches it', () => {
    const progress = new Progress(11, 1, true)
    progress.commitSent(2, 10)
    progress.answered(2, 4)
    expect(progress.knownCommit).to.equal(0)
    progress.answered(2, 10)
    expect(progress.knownCommit).to.equal(10)
  })

  it('probes again at the index where the logs may agree, and ignores an old refusal', () => {
    const progress = new Progress(11, 1, true)
    expect(progress.refused(10, 4, 1)).to.equal(true)
    expect(progress.next).to.equal(4)
    expect(progress.refused(10, 2, 1)).to.equal(false)
    progress.accepted(6, 2)
    expect([progress.state, progress.next]).to.deep.equal(['replicate', 7])
    expect(progress.refused(5, 1, 2)).to.equal(false)
  })

  it('notices that a follower refuses what it had acknowledged, and finds out what it still has', () => {
    const progress = new Progress(11, 1, true)
    progress.accepted(10, 3)
    expect(progress.refused(10, 5, 3), 'an answer to what was sent before the acknowledgement').to.equal(false)
    expect([progress.wentBack, progress.match]).to.deep.equal([false, 10])
    expect(progress.refused(10, 5, 4)).to.equal(true)
    expect([progress.wentBack, progress.match, progress.state, progress.next]).to.deep.equal([true, 0, 'probe', 5])
    progress.accepted(10, 5)
    expect([progress.wentBack, progress.match, progress.state]).to.deep.equal([true, 10, 'replicate'])
  })
})
