import type { Findings } from '../checkers/final-state.ts'
import type { DrillContext } from './drill.ts'
import { pickShard } from './shard-roles.ts'

const documents = 3
const slowMs = 3000

/**
 * The disk of one replica is slow, so that the other two acknowledge a document, and an edit of it, before this replica
 * has them. A read asks two replicas, so it finds both through every node, whichever of them answers first.
 */
export async function laggingReplicaDrill(context: DrillContext): Promise<Findings> {
  const { database, dice, disks, world } = context
  const { ids, roles: { decider, standIn, third } } = await pickShard(context, documents)
  const trouble = disks.of(world.node(dice.pick([standIn, third])))
  const findings: string[] = []
  for (const id of ids) {
    let revision: string | undefined
    for (let edit = 0; edit < 2; edit++) {
      trouble.slowMs = slowMs
      const { body, status } = await world.write(
        decider, database, id, { drill: 'acknowledged by two', edit, ...(revision && { _rev: revision }) },
      )
      if (status === 201) {
        revision = body.rev as string
        findings.push(...await readThroughAll(context, id, revision))
      }
      trouble.slowMs = 0
    }
  }
  await world.converge(database)
  return findings
}

async function readThroughAll({ database, world }: DrillContext, id: string, revision: string): Promise<Findings> {
  const answers = await Promise.all(world.nodes.map(async ({ name, number }) =>
    ({ name, ...await world.read(number, database, id) })))
  return answers
    .filter(({ body, status }) => status === 404 || status === 200 && body._rev !== revision)
    .map(({ body, name, status }) => `${name} answered ${status} ${body._rev ?? ''} for ${id}, of which ${revision} `
      + 'had been acknowledged by a majority')
}
