/** Runs the unit tests on a copy of the checkout until one fails. */
import { failingTest } from './mocha-run.ts'
import type { StepOutcome } from './step-result.ts'

/**
 * The suites to run for a mutant of a package, in this order: its own tests first, because they are the fastest and the
 * most likely to fail. The tests of the simulator are not among them: the swarm and the scenarios are steps of their
 * own.
 */
const suites: Readonly<Record<string, readonly string[]>> = {
  cluster: ['cluster', 'http', 'server'],
  shard: ['shard', 'server'],
  rpc: ['rpc', 'server'],
}

/** @param file the file that was changed */
export async function runUnitTests(copy: string, checkout: string, file: string): Promise<StepOutcome> {
  const names = suites[file.split('/')[1]!]!
  for (const name of names) {
    const title = await failingTest(copy, checkout, [`packages/${name}/test/**/*.test.ts`])
    if (title !== undefined) return { caught: true, by: `${name}: ${title}` }
  }
  return { caught: false, by: names.join(', ') }
}
