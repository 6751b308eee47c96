import type { DrillContext } from './drill.ts'
import type { Findings } from '../checkers/final-state.ts'

/** A write waits for two probes of 400 ms at most (docs/reliability.md, "Nodes that do not answer"), and for disks. */
const writeMsMax = 2000
const silentMs = 6000
const pauseMs = 100

/** While a node does not answer and its links stay open, writes through other nodes are not delayed for long. */
export async function silentNodeDrill(context: DrillContext): Promise<Findings> {
  const { database, dice, number, others, world } = context
  if (dice.chance(0.5)) world.pause(number)
  else world.partition([number], others)
  const endMs = world.nowMs + silentMs
  const findings: string[] = []
  while (world.nowMs < endMs && findings.length === 0) {
    const startMs = world.nowMs
    const through = dice.pick(others)
    const id = `drill:${dice.seed()}`
    const { status } = await world.write(through, database, id, { drill: 'silent' })
    const tookMs = Math.round(world.nowMs - startMs)
    if (tookMs > writeMsMax) {
      findings.push(`a write of ${id} through node ${through} was answered ${status} after ${tookMs} ms, `
        + `while node ${number} did not answer`)
    }
    await world.sleep(dice.wait(pauseMs))
  }
  world.continue(number)
  world.heal()
  await world.ready()
  await world.converge(database)
  return findings
}
