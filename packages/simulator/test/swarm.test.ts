import { expect } from 'chai'
import { runSwarm } from '../src/swarm/swarm-run.ts'

const runsMs = 60_000

describe('a swarm', () => {
  it('has the same trace for the same seed, and another one for another seed', async () => {
    const [first, again, other] = [await runSwarm(7), await runSwarm(7), await runSwarm(8)]
    expect(again.traceHash).to.equal(first.traceHash)
    expect(again.events).to.equal(first.events)
    expect(other.traceHash).not.to.equal(first.traceHash)
  }).timeout(runsMs)
})
