/**
 * `scripts/simulate --planted`: prints for each planted bug the checker that found it and the number of seeds that were
 * needed.
 */
import { huntBug } from '../planted/bug-hunt.ts'
import { plantedBugs } from '../planted/index.ts'
import type { PlantedBug } from '../planted/planted-bug.ts'
import { ProcessGuards } from './process-guards.ts'

const seedsMaxDefault = 500

/**
 * @param swarm whether random runs must find the bugs that a directed scenario finds otherwise
 * @returns the exit status: 1 when a bug was not found
 */
export async function findPlanted(
  { only, swarm = false, from = 1, seedsMax = seedsMaxDefault }: {
    readonly only?: string
    readonly swarm?: boolean
    readonly from?: number
    readonly seedsMax?: number
  },
): Promise<number> {
  const guards = new ProcessGuards()
  guards.install()
  const bugs = only === undefined ? plantedBugs : [plantNamed(only)]
  let missed = 0
  for (const planted of bugs) {
    const bug = swarm ? { ...planted, scenario: undefined } : planted
    const startedMs = performance.now()
    const caught = await huntBug(bug, from, seedsMax, world => guards.watch(world))
    guards.watch(undefined)
    const seconds = ((performance.now() - startedMs) / 1000).toFixed(1)
    if (caught === null) {
      missed++
      console.log(`MISSED  ${bug.name}: ${bug.does}: not in ${seedsMax} seeds (${seconds} s)`)
    } else {
      const expected = bug.caughtBy.includes(caught.by) ? '' : ` [not among ${bug.caughtBy.join(', ')}]`
      const seeds = `${caught.seeds} seed${caught.seeds === 1 ? '' : 's'} (${seconds} s)`
      const message = caught.message.replaceAll(/\s+/g, ' ').slice(0, 160)
      console.log(`caught  ${bug.name}: by ${caught.by}${expected} after ${seeds}: ${message}`)
    }
  }
  console.log(`${bugs.length - missed} caught, ${missed} missed`)
  return missed === 0 ? 0 : 1
}

/** @throws RangeError that lists all bugs when there is none of that name */
export function plantNamed(wanted: string): PlantedBug {
  const bug = plantedBugs.find(({ name }) => name === wanted)
  if (bug === undefined) {
    throw new RangeError(`there is no planted bug "${wanted}", but ${plantedBugs.map(({ name }) => name).join(', ')}`)
  }
  return bug
}
