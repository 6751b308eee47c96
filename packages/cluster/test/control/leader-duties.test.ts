import { expect } from 'chai'
import type { VotingConfiguration } from '@sectional/core'
import { ManualClock, MemoryLog } from '@sectional/runtime'
import type { RaftDriver } from '../../src/consensus/raft-driver.ts'
import { LeaderDuties } from '../../src/control/leader-duties.ts'
import { initialState } from '../../src/control/state-machine.ts'
import { PeerHub } from '../memory-peer-network.ts'
import { addressOf } from './control-world.ts'

describe('the leader', () => {
  const clock = new ManualClock()
  const context = { timeoutMs: 1000 }
  const nodes = { n1: { name: 'n1', address: addressOf('n1'), zone: null } }
  let configuration: VotingConfiguration

  const duties = (): LeaderDuties => new LeaderDuties({
    node: 'n1', address: addressOf('n1'), zone: null, clock, log: new MemoryLog(),
    network: new PeerHub({ clock }).attach({ node: 'n1', address: addressOf('n1'), clusterId: 'c' }),
    raft: { get configuration() { return configuration }, leads: true, matchOf: () => 7 } as unknown as RaftDriver,
    state: () => ({ ...initialState('c'), index: 9, nodes }),
    newCommandId: () => 'id',
    proposeHere: () => Promise.reject(new Error('nothing is to be proposed')),
  })

  it('lets a removed node in again only when its old vote is out: it has forgotten how it voted', async () => {
    const returning = { type: 'admit-node' as const, id: 'x', node: 'n2', address: addressOf('n2'), zone: null, fresh: true }
    configuration = { voters: ['n1', 'n2'], learners: [] }
    expect(await duties().checkAdmission(returning, context)).to.deep.equal({ kind: 'later' })
    configuration = { voters: ['n1'], learners: ['n2'] }
    expect(await duties().checkAdmission(returning, context)).to.deep.equal({ kind: 'later' })
    configuration = { voters: ['n1'], learners: [] }
    expect(await duties().checkAdmission(returning, context)).to.equal(null)
  })
})
