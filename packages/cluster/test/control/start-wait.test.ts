import { ManualClock } from '@sectional/runtime'
import { expect } from 'chai'
import { StartWait } from '../../src/control/start-wait.ts'
import type { StartView } from '../../src/control/start-wait.ts'

const maxMs = 3000

function waiting(view: Partial<StartView>): { readonly clock: ManualClock; readonly wait: StartWait } {
  const clock = new ManualClock()
  const wait = new StartWait(clock, maxMs, {
    untried: () => [], voters: () => ['a', 'b', 'c'], connected: () => ['a', 'b'], confirmed: () => true,
    recorded: () => true, ...view,
  })
  return { clock, wait }
}

describe('the wait after the start of a node', () => {
  it('lasts until the metadata records the start, so that an older copy of its disk is recognised', () => {
    let recorded = false
    const { wait } = waiting({ recorded: () => recorded })
    expect(wait.reason()).to.match(/does not record its start/)
    recorded = true
    expect(wait.reason()).to.equal(null)
    recorded = false
    expect(wait.reason(), 'it never begins again').to.equal(null)
  })

  it('ends after its longest time, and at once where no leader can answer', async () => {
    const { clock, wait } = waiting({ recorded: () => false })
    expect(wait.reason()).not.to.equal(null)
    await clock.advance(maxMs)
    expect(wait.reason()).to.equal(null)
    expect(waiting({ recorded: () => false, connected: () => ['a'] }).wait.reason()).to.equal(null)
    expect(waiting({ confirmed: () => false, voters: () => [], connected: () => ['a'] }).wait.reason()).to.equal(null)
  })

  it('is for the node itself where it is the only voter, so that it knows a deletion which it has carried out', () => {
    let confirmed = false
    const { wait } = waiting({
      confirmed: () => confirmed, recorded: () => false, voters: () => ['a'], connected: () => ['a'],
    })
    expect(wait.reason()).to.match(/has not heard from the leader/)
    confirmed = true
    expect(wait.reason()).to.equal(null)
  })
})
