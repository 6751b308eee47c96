import { expect } from 'chai'
import type { RaftMessage } from '@sectional/core'
import type { RaftSnapshot } from '../../src/consensus/raft-work.ts'
import { snapshotChecksum, SnapshotIntake, SnapshotTransfer } from '../../src/consensus/snapshot-pieces.ts'

type Piece = RaftMessage & { readonly type: 'snapshot' }

const state = Uint8Array.from({ length: 100 }, (_, at) => at * 7 & 0xff)
const snapshot: RaftSnapshot = {
  index: 9, term: 3, configuration: { voters: ['a'], learners: [] }, state, checksum: snapshotChecksum(state),
}

function sent(transfer: SnapshotTransfer): Piece {
  return { from: 'a', to: 'b', term: 4, round: 1, type: 'snapshot', ...transfer.next() }
}

describe('a snapshot in pieces', () => {
  it('arrives whole, one piece at a time', () => {
    const transfer = new SnapshotTransfer(snapshot, 30)
    const intake = new SnapshotIntake(1000)
    const held: number[] = []
    let taken = intake.take(sent(transfer))
    for (; typeof taken === 'number'; taken = intake.take(sent(transfer))) {
      held.push(taken)
      expect(transfer.answered(9, taken)).to.equal(true)
    }
    expect(held).to.deep.equal([30, 60, 90])
    expect(taken).to.deep.equal(snapshot)
  })

  it('continues at the right offset when pieces arrive twice, late or out of order', () => {
    const transfer = new SnapshotTransfer(snapshot, 30)
    const intake = new SnapshotIntake(1000)
    const first = sent(transfer)
    intake.take(first)
    transfer.answered(9, 30)
    const second = sent(transfer)
    expect(intake.take(second)).to.equal(60)
    expect([intake.take(first), intake.take(second)]).to.deep.equal([60, 60])
    expect(transfer.answered(9, 60)).to.equal(true)
    expect(transfer.answered(9, 60)).to.equal(false)
    expect(transfer.answered(8, 90)).to.equal(false)
  })

  it('is sent again from the start when a byte has changed on the way', () => {
    const transfer = new SnapshotTransfer(snapshot, 60)
    const intake = new SnapshotIntake(1000)
    const first = sent(transfer)
    transfer.answered(
      9, intake.take({ ...first, state: first.state.map((byte, at) => at === 5 ? byte ^ 1 : byte) }) as number,
    )
    expect(intake.take(sent(transfer))).to.equal(0)
    expect(transfer.answered(9, 0)).to.equal(true)
    transfer.answered(9, intake.take(sent(transfer)) as number)
    expect(intake.take(sent(transfer))).to.deep.equal(snapshot)
  })

  it('is not accepted from the middle, nor when it is too large', () => {
    const transfer = new SnapshotTransfer(snapshot, 30)
    transfer.answered(9, 30)
    expect(new SnapshotIntake(1000).take(sent(transfer))).to.equal(0)
    expect(new SnapshotIntake(99).take(sent(new SnapshotTransfer(snapshot, 30)))).to.equal(0)
  })

  it('is dropped when another leader sends one', () => {
    const intake = new SnapshotIntake(1000)
    intake.take(sent(new SnapshotTransfer(snapshot, 30)))
    const other = { ...sent(new SnapshotTransfer({ ...snapshot, index: 12 }, 60)), from: 'c', term: 5 }
    expect(intake.take(other)).to.equal(60)
  })
})
