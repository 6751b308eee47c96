import { expect } from 'chai'
import type { PeerStatus } from '@sectional/core'
import { decideFormation } from '../../src/control/membership.ts'

const fresh = (address: string): PeerStatus => ({ node: address, address, clusterId: null, fresh: true, leader: null })
const member = (address: string, clusterId = 'c', leader: string | null = 'x'): PeerStatus => ({
  node: address, address, clusterId, fresh: false, leader,
})

describe('the decision to form or to join a cluster', () => {
  const seeds = ['a', 'b', 'c']
  const cases: readonly [string, Parameters<typeof decideFormation>[0], string][] = [
    ['alone without seeds: forms', { address: 'a', seeds: [], statuses: [] }, 'bootstrap'],
    ['alone as its own seed: forms', { address: 'a', seeds: ['a'], statuses: [] }, 'bootstrap'],
    ['first seed with a fresh majority: forms', { address: 'a', seeds, statuses: [fresh('b')] }, 'bootstrap'],
    ['first seed without one: waits', { address: 'a', seeds, statuses: [] }, 'wait'],
    ['fresh strangers are not counted', { address: 'a', seeds, statuses: [fresh('x'), fresh('y')] }, 'wait'],
    [
      'first seed within its grace period: waits',
      { address: 'a', seeds, statuses: [fresh('b'), fresh('c')], grace: 'later' }, 'wait',
    ],
    ['alone within its grace period: waits', { address: 'a', seeds: ['a'], statuses: [], grace: 'later' }, 'wait'],
    [
      'any member within the grace period: joins',
      { address: 'a', seeds: ['a'], statuses: [member('c')], grace: 'later' }, 'join',
    ],
    ['another seed: waits for the first', { address: 'b', seeds, statuses: [fresh('a'), fresh('c')] }, 'wait'],
    ['a stranger to the list: waits', { address: 'x', seeds, statuses: [fresh('a'), fresh('b'), fresh('c')] }, 'wait'],
    ['any member: joins', { address: 'a', seeds, statuses: [fresh('b'), member('c')] }, 'join'],
    [
      'a member that is linked and has not answered yet: joins',
      {
        address: 'a', seeds, statuses: [fresh('b')],
        linked: [{ node: 'b', clusterId: null }, { node: 'c', clusterId: 'c' }],
      },
      'join',
    ],
    [
      'two clusters: waits for a human', { address: 'a', seeds, statuses: [member('b', 'c1'), member('c', 'c2')] },
      'wait',
    ],
  ]
  for (const [title, view, kind] of cases) it(title, () => { expect(decideFormation(view).kind).to.equal(kind) })

  it('prefers to join through members that know a leader', () => {
    const decision = decideFormation({ address: 'a', seeds, statuses: [member('b', 'c', null), member('c')] })
    expect(decision).to.deep.equal({ kind: 'join', through: ['c', 'b'] })
  })
})
