import { expect } from 'chai'
import { MemoryLog } from '@sectional/runtime'
import type { ForeignContact } from '@sectional/core'
import type { ClusterState } from '../../src/control/cluster-state.ts'
import { ForeignClusters, isStray } from '../../src/control/foreign-clusters.ts'

function state(members: readonly string[], replaces?: readonly string[]): ClusterState {
  const nodes = Object.fromEntries(members.map(name => [name, { name, address: `${name}:1`, zone: null }]))
  return { clusterId: 'own', index: 7, nodes, databases: new Map(), settings: {}, ...(replaces && { replaces }) }
}

const stranger: ForeignContact = {
  peer: { node: 'b', address: 'b:1', clusterId: 'other' }, dialed: null, claimed: false,
}

describe('a contact with another cluster', () => {
  const seeds = ['a:1', 'b:1']
  const cases: readonly [string, ForeignContact, ClusterState, boolean][] = [
    ['that has this node as a member: it is the stray one', { ...stranger, claimed: true }, state(['a']), true],
    [
      'that has this node as a member, while it has members: it is the stray one', { ...stranger, claimed: true },
      state(['a', 'c']), true,
    ],
    ['that this one replaces: goes on', { ...stranger, claimed: true }, state(['a'], ['older', 'other']), false],
    ['at a seed, alone: it is the stray one', { ...stranger, dialed: 'b:1' }, state(['a']), true],
    ['at a seed, with other members: goes on', { ...stranger, dialed: 'b:1' }, state(['a', 'c']), false],
    ['at the address of a member: goes on', { ...stranger, dialed: 'b:1' }, state(['a', 'b']), false],
    ['that dialed this node by mistake: goes on', stranger, state(['a']), false],
  ]
  for (const [title, contact, own, stray] of cases) {
    it(title, () => { expect(isStray(contact, { node: 'a', seeds, state: own })).to.equal(stray) })
  }

  it('is logged once, as an error, and gives a reason that stays', () => {
    const log = new MemoryLog()
    const clusters = new ForeignClusters({ node: 'a', seeds, log, state: () => state(['a']) })
    clusters.found(stranger)
    expect(clusters.reason).to.equal(null)
    for (let times = 0; times < 3; times++) clusters.found({ ...stranger, claimed: true })
    clusters.found(stranger)
    expect(clusters.reason).to.match(
      /b at b:1 belongs to cluster other, which has a as a member, .* empty its data directory/,
    )
    expect(log.lines.map(({ level }) => level)).to.deep.equal(['error', 'error'])
  })

  it('is ignored before this node belongs to a cluster', () => {
    const clusters = new ForeignClusters({ node: 'a', seeds, log: new MemoryLog(), state: () => null })
    clusters.found({ ...stranger, claimed: true })
    expect(clusters.reason).to.equal(null)
  })
})
