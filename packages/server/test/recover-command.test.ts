import type { PeerStatus } from '@sectional/core'
import { expect } from 'chai'
import { refusalWhile } from '../src/command-line/recover-command.ts'

const cluster = { clusterId: 'c', voters: ['n1', 'n2', 'n3', 'n4', 'n5'] }

function status(node: string, leader: string | null = null, clusterId = 'c'): PeerStatus {
  return { node, address: `${node}:1`, clusterId, fresh: false, leader }
}

describe('the recovery of a cluster', () => {
  const refusal = (...statuses: PeerStatus[]): string => refusalWhile(statuses, 'n1', cluster) ?? 'none'

  it('is refused while a majority of the voters is left', () => {
    expect(refusal(status('n2'), status('n3'))).to.match(/^n2, n3 answer, and with this node they are a majority/)
    expect(refusalWhile([], 'n1', { ...cluster, voters: ['n1'] })).to.match(/^This node alone is a majority/)
  })

  it('is refused while a member follows a leader, without a claim that a majority is left', () => {
    expect(refusal(status('n2', 'n4'))).to.match(/^n2 answers and follows a leader, n4\..*try again/)
    expect(refusal(status('n2', 'n4'))).to.not.contain('majority')
  })

  it('is refused while a member answers at all', () => {
    expect(refusal(status('n2'))).to.match(/^Stop n2 first/)
    expect(refusal(status('n2', 'n1'))).to.match(/^Stop n2 first/)
  })

  it('is not refused because of nodes of other clusters, or of none', () => {
    expect(refusal(status('n2', 'n2', 'other'), { ...status('n3'), clusterId: null })).to.equal('none')
  })
})
