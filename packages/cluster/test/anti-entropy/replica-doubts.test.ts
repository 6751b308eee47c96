import type { ReplicaInfo } from '@sectional/core'
import { expect } from 'chai'
import { ReplicaDoubts } from '../../src/anti-entropy/replica-doubts.ts'

/** Milliseconds after which a pair may be compared again, whenever it was compared. */
const rested = 1_000_000

/** The state of a replica that has one document and has seen all changes of the other replica. */
function replica(history: string, peer: string, purgeSequence: number, documentCount = 1): ReplicaInfo {
  return {
    history, sequence: 3, documentCount, deletedCount: 0, purgeSequence, seen: { [peer]: 3 },
  } satisfies Partial<ReplicaInfo> as unknown as ReplicaInfo
}

describe('two replicas that have seen all changes of each other', () => {
  it('are equal without purges, and doubtful when they have different numbers of documents', () => {
    const doubts = new ReplicaDoubts()
    expect(doubts.stateOf('pair', replica('a', 'b', 0), replica('b', 'a', 0), 0)).to.equal('equal')
    expect(doubts.stateOf('pair', replica('a', 'b', 0), replica('b', 'a', 0, 2), 0)).to.equal('doubtful')
  })

  it('are doubtful again after a purge on either of them since they were last compared', () => {
    for (const [own, other] of [[3, 2], [2, 3]] as const) {
      const doubts = new ReplicaDoubts()
      const compared = [replica('a', 'b', 2), replica('b', 'a', 2)] as const
      expect(doubts.stateOf('pair', ...compared, 0)).to.equal('doubtful')
      doubts.compared('pair', ...compared, 10, 0)
      expect(doubts.stateOf('pair', ...compared, rested)).to.equal('equal')
      const purged = [replica('a', 'b', own), replica('b', 'a', other)] as const
      expect(doubts.stateOf('pair', ...purged, rested), `purges ${own} and ${other}`).to.equal('doubtful')
    }
  })
})
