import { readFile } from 'node:fs/promises'
import { expect } from 'chai'
import { minimise } from '../src/minimiser/minimise.ts'
import { huntBug } from '../src/planted/bug-hunt.ts'
import { plantedBugs } from '../src/planted/index.ts'
import { scenarios } from '../src/scenarios/index.ts'

/** Bugs that are found after a few seeds. `scripts/simulate --planted` runs all of them. */
const quickBugs = [
  'count-before-durable', 'leaked-timers', 'stale-cache', 'local-stamp-rule', 'no-catch-up', 'altered-entry',
  'second-admission', 'filling-counts',
  'skipped-change', 'token-of-one-range', 'lost-wake-up', 'forgotten-attachment', 'collected-while-named',
  'rows-of-replaced-revisions', 'rows-out-of-order', 'index-skips-purges',
  'find-loses-matches', 'serves-before-links',
]
/** The first seed; the seed before it rests for hours of simulated time. */
const quickSeedsFrom = 2
const quickSeedsMax = 40
/** With an earlier seed, the planted bug is found after one step, so that there is nothing to shorten. */
const minimisedSeedsFrom = 5

describe('planted bugs', function () {
  this.timeout(120_000)

  for (const name of quickBugs) {
    it(`are found: ${name}`, async () => {
      const bug = plantedBugs.find(each => each.name === name)!
      const caught = await huntBug(bug, quickSeedsFrom, quickSeedsMax)
      expect(caught, `not in ${quickSeedsMax} seeds`).not.to.equal(null)
      expect(bug.caughtBy).to.include(caught!.by)
    })
  }

  it('have names of their own, and scenarios that exist', () => {
    expect(new Set(plantedBugs.map(({ name }) => name)).size).to.equal(plantedBugs.length)
    for (const { name, scenario } of plantedBugs) {
      if (scenario !== undefined) expect(scenarios.map(each => each.name), name).to.include(scenario)
    }
  })
})

describe('the table of planted bugs in docs/reliability.md', () => {
  it('has one row for each bug', async () => {
    const text = await readFile(new URL('../../../docs/reliability.md', import.meta.url), 'utf8')
    const table = /### Planted bugs\n([^]*?)\n### /.exec(text)![1]!
    const rows = [...table.matchAll(/^\| ([a-z-]+) \| .* \| .* \| .* \|$/gm)].map(([, name]) => name)
    expect(rows.filter(name => name !== 'bug').sort()).to.deep.equal(plantedBugs.map(({ name }) => name).sort())
  })
})

describe('the minimiser', function () {
  this.timeout(60_000)
  const bug = plantedBugs.find(({ name }) => name === 'count-before-durable')!

  it('finds a shorter schedule that fails in the same way, and that can be replayed', async () => {
    const { by, lastSeed: seed } = (await huntBug(bug, minimisedSeedsFrom, quickSeedsMax))!
    const found = await minimise({ seed, runsMax: 60, hooks: () => ({ plant: bug.plant() }) })
    expect(found!.result.failure!.finder).to.equal(by)
    expect(found!.result.steps.length).to.be.below(found!.stepsBefore)
    const again = await minimise({
      seed, runsMax: 1, hooks: () => ({ plant: bug.plant(), only: new Set(found!.result.steps) }),
    })
    expect(again!.result.traceHash).to.equal(found!.result.traceHash)
  })

  it('returns nothing for a seed that passes', async () => {
    expect(await minimise({ seed: 7, runsMax: 5 })).to.equal(null)
  })
})
