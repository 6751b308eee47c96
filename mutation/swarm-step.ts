/** Runs seeds of the simulator on a copy of the checkout, beginning with seed 1, until one fails. */
import { runNode } from './child-process.ts'
import type { StepOutcome } from './step-result.ts'

const limits = { totalMsMax: 3_600_000, silenceMsMax: 300_000 }
const simulate = [
  '--conditions=sectional-source', '--disable-warning=ExperimentalWarning',
  'packages/simulator/src/command-line/simulate.ts',
]

/**
 * @param passed the number of seeds that an earlier run has passed
 * @param seedsMax the number of seeds after which the change counts as missed
 */
export async function runSwarm(
  copy: string, checkout: string, passed: number, seedsMax: number,
): Promise<StepOutcome> {
  let from = passed + 1
  while (from <= seedsMax) {
    const count = seedsMax + 1 - from
    const { lines, status, hangs } = await runNode(
      copy, [...simulate, '--seeds', `${count}`, '--from', `${from}`, '--workers', '1', '--hashes'], limits,
    )
    if (status === 0) break
    const found = lines.map(line => /^seed (\d+): (\w+) \(([^)]*)\): /.exec(line)).find(match => match !== null)
    if (!found) {
      const last = lines.findLast(line => /^\d+ [0-9a-f]+$/.test(line))?.split(' ')[0]
      const seed = last === undefined ? from : Number(last) + 1
      return { caught: true, by: `${hangs ? 'hangs' : 'the process ends'}, seed ${seed}` }
    }
    const [, seed, kind, finder] = found
    const unchanged = await runNode(checkout, [...simulate, '--seed', seed!], limits)
    if (unchanged.status === 0) return { caught: true, by: `${finder === kind ? kind : finder}, seed ${seed}` }
    // This seed also fails without the change.
    from = Number(seed) + 1
  }
  return { caught: false, by: `${seedsMax} seeds`, seeds: seedsMax }
}
