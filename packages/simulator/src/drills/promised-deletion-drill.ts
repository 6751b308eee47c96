import type { Findings } from '../checkers/final-state.ts'
import { deleteAtRest } from './drill.ts'
import type { DrillContext } from './drill.ts'

const waitingMs = 5000
const pollMs = 5
const attempts = 80
const replacedChance = 0.4
const knownMsMax = 60_000

/**
 * A node that is cut off promises to delete a database. The name is free for the node's next request to create it, also
 * when the node crashes before it can reach the others: the deletion is carried out first. A database that the others
 * have made anew under this name meanwhile is shown as soon as the node knows of it.
 */
export async function promisedDeletionDrill(context: DrillContext): Promise<Findings> {
  const { dice, number, others, world } = context
  if (dice.chance(replacedChance)) return replacedDatabase(context)
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

/** While a node is cut off and has promised to delete a database, the others delete it and create it anew. */
async function replacedDatabase({ dice, number, others, world }: DrillContext): Promise<Findings> {
  const path = `/drill${dice.seed()}`
  const options = '?q=1&n=1'
  const through = others[0]!
  const created = await world.send(number, 'PUT', path + options)
  if (created.status !== 201) return []
  world.partition([number], others)
  await world.send(number, 'DELETE', path)
  await deleteAtRest(world, through, path)
  const again = await world.send(through, 'PUT', path + options)
  const decided = world.node(through).inside?.control.state()?.index ?? 0
  const isKnown = (): boolean => (world.node(number).inside?.control.state()?.index ?? 0) >= decided
  world.heal()
  for (const endMs = world.nowMs + knownMsMax; !isKnown() && world.nowMs < endMs;) await world.sleep(pollMs)
  const { status } = await world.send(number, 'GET', path)
  const findings = again.status === 201 && isKnown() && status === 404
    ? [`node ${number} answers 404 for ${path}, which was created anew before, as the node knows`] : []
  await world.allReady()
  await deleteAtRest(world, through, path)
  return findings
}
