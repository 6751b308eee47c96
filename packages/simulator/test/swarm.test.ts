import { expect } from 'chai'
import { runSwarm } from '../src/swarm/swarm-run.ts'

const seedsMs = 60_000

describe('a swarm', () => {
  it('has the same trace for the same seed, and another one for another seed', async () => {
    const [first, again, other] = [await runSwarm(7), await runSwarm(7), await runSwarm(8)]
    expect(again.traceHash).to.equal(first.traceHash)
    expect(again.events).to.equal(first.events)
    expect(other.traceHash).not.to.equal(first.traceHash)
  }).timeout(seedsMs)

  it('passes with a few seeds', async () => {
    for (let seed = 100; seed < 115; seed++) {
      const { failure, recent } = await runSwarm(seed)
      expect(failure, `scripts/simulate --seed ${seed} --verbose\n${recent.join('\n')}`).to.equal(undefined)
    }
  }).timeout(seedsMs)
})
