/** `scripts/simulate --seed N --minimise`. */
import { minimise } from '../minimiser/minimise.ts'
import { exitCodes } from '../world/failure.ts'
import { plantNamed } from './planted.ts'
import { ProcessGuards } from './process-guards.ts'

const runsMax = 300

/** @returns the exit status of the failure, or 0 when the seed does not fail */
export async function printMinimised(seed: number, bug: string | undefined): Promise<number> {
  const guards = new ProcessGuards()
  guards.install()
  const found = await minimise({
    seed, runsMax,
    hooks: () => ({
      onWorld: world => guards.watch(world), ...(bug !== undefined && { plant: plantNamed(bug).plant() }),
    }),
  })
  guards.watch(undefined)
  if (found?.result.failure === undefined) {
    console.log(`seed ${seed} does not fail`)
    return 0
  }
  const { runs, stepsBefore, result: { failure, recent, steps } } = found
  for (const line of recent) console.log(`    ${line}`)
  console.log(`seed ${seed}: ${failure.kind} (${failure.finder}): ${failure.message}`)
  console.log(`${steps.length} of ${stepsBefore} steps are left after ${runs} runs`)
  const planted = bug === undefined ? '' : ` --plant ${bug}`
  console.log(`replay: scripts/simulate --seed ${seed}${planted} --only '${steps.join(',')}' --verbose`)
  return exitCodes[failure.kind]
}
