import type { Findings } from '../checkers/final-state.ts'
import { deleteAtRest } from './drill.ts'
import type { DrillContext } from './drill.ts'

const waitingMs = 5000
const pollMs = 20
const attempts = 20

/**
 * A node that is cut off promises to delete a database. The name is free for the node's next request to create it, also
 * when the node crashes before it can reach the others: the deletion is carried out first.
 */
export async function promisedDeletionDrill(context: DrillContext): Promise<Findings> {
  const { dice, number, others, world } = context
  const path = `/drill${dice.seed()}`
  const options = '?q=1&n=1'
  const created = await world.send(number, 'PUT', `${path}${options}`)
  if (created.status !== 201) return []
  world.partition([number], others)
  const deleted = await world.send(number, 'DELETE', path)
  await world.sleep(dice.wait(waitingMs))
  if (dice.chance(0.5)) {
    world.crash(number)
    await world.start(number)
  }
  world.heal()
  // The node carries out the deletion as soon as it can, and the request must not come before it.
  let answer = await world.send(number, 'PUT', `${path}${options}`)
  for (let left = attempts; answer.status === 503 && left > 0; left--) {
    await world.sleep(pollMs)
    answer = await world.send(number, 'PUT', `${path}${options}`)
  }
  const findings = deleted.status === 202 && answer.status === 412
    ? [`node ${number} refuses to create ${path}, whose deletion it had promised: ${JSON.stringify(answer.body)}`] : []
  await world.allReady()
  await deleteAtRest(world, others[0]!, path)
  return findings
}
