/**
 * Runs the directed scenarios on simulated nodes. Then builds the copy of the checkout and runs the recorded scenarios
 * on a cluster of its nodes.
 */
import { runNode } from './child-process.ts'
import { failingTest } from './mocha-run.ts'
import type { StepOutcome } from './step-result.ts'

const limits = { totalMsMax: 1_800_000, silenceMsMax: 900_000 }

export async function runScenarios(copy: string, checkout: string): Promise<StepOutcome> {
  const directed = await failingTest(copy, checkout, ['packages/simulator/test/scenarios.test.ts'])
  if (directed !== undefined) return { caught: true, by: directed }
  // Some changes leave an unused name behind. The compiler reports it, and writes the code nevertheless.
  await runNode(copy, ['scripts/build.mjs'], limits)
  const failures: string[] = []
  const { status, hangs } = await runNode(copy, [
    'node_modules/mocha/bin/mocha.js', '--config', 'test-cluster/.mocharc.json', '--no-parallel', '--bail',
    '--reporter', 'json-stream', '-g', 'conformance with the recorded scenarios',
  ], limits, line => {
    if (line.startsWith('["fail",')) failures.push((JSON.parse(line) as [string, { title: string }])[1].title)
  })
  if (failures.length > 0) return { caught: true, by: `recorded scenarios: ${failures[0]!}` }
  if (hangs) return { caught: true, by: 'the recorded scenarios do not end' }
  if (status !== 0) return { caught: true, by: `the recorded scenarios ended with ${status}` }
  return { caught: false, by: 'directed and recorded scenarios' }
}
