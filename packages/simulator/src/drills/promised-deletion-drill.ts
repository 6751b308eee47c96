import type { Findings } from '../checkers/final-state.ts'
import { deleteAtRest } from './drill.ts'
import type { DrillContext } from './drill.ts'

const waitingMs = 5000
const pollMs = 20
const attempts = 20
const replacedChance = 0.4
const shownMsMax = 60_000

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

async function replacedDatabase({ dice, number, others, world }: DrillContext): Promise<Findings> {
  const name = `drill${dice.seed()}`
  const options = '?q=1&n=1'
  const node = world.node(number)
  const incarnationOf = (of: number): string | undefined =>
    world.node(of).inside?.control.state()?.databases.get(name)?.incarnation
  const findings: string[] = []
  const created = await world.send(number, 'PUT', `/${name}${options}`)
  if (created.status !== 201) return []
  world.partition([number], others)
  await world.send(number, 'DELETE', `/${name}`)
  const through = others[0]!
  await deleteAtRest(world, through, `/${name}`)
  const again = await world.send(through, 'PUT', `/${name}${options}`)
  const successor = incarnationOf(through)
  world.heal()
  for (const endMs = world.nowMs + shownMsMax; again.status === 201 && world.nowMs < endMs; await world.sleep(pollMs)) {
    if (successor === undefined || incarnationOf(number) !== successor) continue
    const { status } = await world.send(number, 'GET', `/${name}`)
    if (status === 200) break
    if (status !== 404) continue
    findings.push(`${node.name} answers 404 for /${name}, of which it knows incarnation ${successor}`)
    break
  }
  await world.allReady()
  await deleteAtRest(world, through, `/${name}`)
  return findings
}
