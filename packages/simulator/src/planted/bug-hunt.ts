/** Plants one bug and runs seeds until a checker finds it. */
import { scenarios } from '../scenarios/index.ts'
import { simulateScenario } from '../scenarios/simulated-cluster.ts'
import { runSwarm } from '../swarm/swarm-run.ts'
import type { World, WorldOptions } from '../world/world.ts'
import { Failure } from '../world/failure.ts'
import type { PlantedBug } from './planted-bug.ts'

export interface Catch {
  /** The checker, or the phase of the run, that found the bug. */
  readonly by: string
  readonly message: string
  /** Number of seeds that were run, including the one that found the bug. */
  readonly seeds: number
  readonly lastSeed: number
}

/**
 * Runs seeds with the bug. A seed that fails without the bug too is skipped.
 *
 * @param bug is hunted by its directed scenario if it names one, and else by random runs
 * @returns null when no seed finds the bug
 */
export async function huntBug(
  bug: PlantedBug, fromSeed: number, seedsMax: number, onWorld: (world: World) => void = () => {},
): Promise<Catch | null> {
  for (let seeds = 1; seeds <= seedsMax; seeds++) {
    const lastSeed = fromSeed + seeds - 1
    const failure = await failureOf(bug, bug.plant(), lastSeed, onWorld)
    if (failure !== null && await failureOf(bug, undefined, lastSeed, onWorld) === null) {
      return { ...failure, seeds, lastSeed }
    }
  }
  return null
}

async function failureOf(
  bug: PlantedBug, plant: WorldOptions['plant'], seed: number, onWorld: (world: World) => void,
): Promise<Pick<Catch, 'by' | 'message'> | null> {
  if (bug.scenario === undefined) {
    const { failure } = await runSwarm(seed, { plant, onWorld })
    return failure === undefined ? null : { by: failure.finder, message: failure.message }
  }
  const scenario = scenarios.find(({ name }) => name === bug.scenario)
  if (scenario === undefined) throw new Error(`there is no scenario "${bug.scenario}"`)
  try {
    await simulateScenario(scenario, seed, { plant })
    return null
  } catch (error) {
    return error instanceof Failure
      ? { by: error.finder, message: error.message }
      : { by: 'scenario', message: String(error) }
  }
}
