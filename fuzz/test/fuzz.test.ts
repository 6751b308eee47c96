/** Each target with a few inputs of other seeds in each run of the tests; `scripts/fuzz` checks more. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { checkSeed, replayCommand, target } from '../fuzz-target.ts'
import { fuzzTargets } from '../target-table.ts'

/** Milliseconds that one target may take, with its whole node for each input. */
const targetMsMax = 60_000

describe('the fuzzer', () => {
  const seed = Math.floor(Date.now() / 1000) % 1_000_000_000

  for (const each of fuzzTargets) {
    it(`${each.name}: ${each.property}`, async function () {
      this.timeout(targetMsMax)
      const finding = await checkSeed(each, seed, { runs: each.runsInTests })
      if (finding !== null) assert.fail(`${finding.error}\ninput: ${finding.input}\nreplay: ${replayCommand(finding)}`)
    })
  }

  it('finds a violation, shortens it, and replays it', async () => {
    const planted = target({
      name: 'planted', property: 'No number is above 1000.', runsInTests: 100, inputs: fc.nat(1_000_000),
      check: number => { assert(number <= 1000, 'too large') },
    })
    const finding = await checkSeed(planted, 1)
    assert.equal(finding?.input, '1001')
    assert.equal(replayCommand(finding), `scripts/fuzz --target planted --seed 1 --path ${finding.path}`)
    assert.equal((await checkSeed(planted, 1, { path: finding.path }))?.input, '1001')
  })

  it('has targets with different names', () => {
    assert.equal(new Set(fuzzTargets.map(({ name }) => name)).size, fuzzTargets.length)
  })
})
