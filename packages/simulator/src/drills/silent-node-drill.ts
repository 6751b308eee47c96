import type { DrillContext } from './drill.ts'
import type { Findings } from '../checkers/final-state.ts'

/** A write waits for two probes of 400 ms at most (docs/reliability.md, "Nodes that do not answer"), and for disks. */
const writeMsMax = 2000
const silentMs = 6000
const pauseMs = 100
/** Longer than a probe waits for its answer, and shorter than two probes take. */
const slowMs = 600
const slowDiskMs = 5000
const attachmentChance = 0.3
/** More than a coordinator keeps for a replica that is slow. */
const attachmentBytes = 600_000

/**
 * While a node does not answer and its links stay open, writes through other nodes are not delayed for long. Before,
 * its disk may have been slow, so that it answers a first probe only.
 */
export async function silentNodeDrill(context: DrillContext): Promise<Findings> {
  const { database, dice, disks, number, others, world } = context
  const trouble = disks.of(world.node(number))
  const silence = (): void => {
    if (dice.chance(0.5)) world.pause(number)
    else world.partition([number], others)
  }
  if (dice.chance(0.5)) {
    trouble.slowMs = slowDiskMs
    void world.sleep(slowMs).then(silence)
  } else silence()
  const endMs = world.nowMs + silentMs
  const findings: string[] = []
  while (world.nowMs < endMs && findings.length === 0) {
    const startMs = world.nowMs
    const through = dice.pick(others)
    const id = `drill:${dice.seed()}`
    const { status } = dice.chance(attachmentChance)
      ? await world.send(through, 'PUT', `/${database}/${id}/content`, undefined, {
        content: { type: 'application/octet-stream', text: 'x'.repeat(attachmentBytes) },
      })
      : await world.write(through, database, id, { drill: 'silent' })
    const tookMs = Math.round(world.nowMs - startMs)
    if (tookMs > writeMsMax) {
      findings.push(`a write of ${id} through node ${through} was answered ${status} after ${tookMs} ms, `
        + `while node ${number} did not answer`)
    }
    await world.sleep(dice.wait(pauseMs))
  }
  trouble.slowMs = 0
  world.continue(number)
  world.heal()
  await world.ready()
  await world.converge(database)
  return findings
}
