import { expect } from 'chai'
import { conditions, unmetReason } from '../../src/control/readiness.ts'
import type { ReadinessFacts, Stops } from '../../src/control/readiness.ts'

const serving: ReadinessFacts = {
  node: 'n1', refusal: null, admitted: true, appliedIndex: 7, listed: true, outdated: false, renewing: false,
  lacking: 0, ignoredLeader: null, startWait: null, rival: null, foreignCluster: null,
}

/** For each condition, facts under which it is the first unmet one. */
const unmetFacts: Readonly<Record<string, Partial<ReadinessFacts>>> = {
  'not refused': { refusal: 'it was removed' },
  'only process of its name': { rival: 'a node named n1 is up at n1.test:7000' },
  'replicas renewed': { renewing: true, admitted: false, appliedIndex: 0, listed: false },
  'admitted': { admitted: false, appliedIndex: 0, listed: false },
  'metadata received': { appliedIndex: 0, listed: false },
  'member': { listed: false },
  'current data directory': { outdated: true },
  'started': { startWait: 'it has not heard from its peers yet' },
  'no other cluster': { foreignCluster: 'n2 belongs to cluster c2, which has n1 as a member' },
  'leader that is followed': { ignoredLeader: 'n2' },
  'current metadata': { lacking: 3 },
}
const scopes: readonly Stops[] = ['requests', 'writes', 'traffic']

describe('readiness', () => {
  it('stops nothing while every condition is met', () => {
    expect(scopes.map(what => unmetReason(serving, what))).to.deep.equal([null, null, null])
  })

  it('has an example here for each condition', () => {
    expect(Object.keys(unmetFacts)).to.deep.equal(conditions.map(({ name }) => name))
  })

  for (const condition of conditions) {
    it(`gives a reason when the condition "${condition.name}" is not met, and stops ${condition.stops}`, () => {
      const facts = { ...serving, ...unmetFacts[condition.name] }
      expect(conditions.find(({ unmet }) => unmet(facts) !== null)?.name).to.equal(condition.name)
      const stopped = scopes.filter(what => unmetReason(facts, what) !== null)
      expect(stopped).to.deep.equal(scopes.slice(scopes.indexOf(condition.stops)))
      expect(unmetReason(facts, 'traffic')).to.match(/^[a-z].{20,}$/)
    })
  }
})
