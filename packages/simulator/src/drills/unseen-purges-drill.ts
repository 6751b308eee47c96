import { documentStoreName } from '@sectional/server'
import type { Findings } from '../checkers/final-state.ts'
import { suspendFor } from './digest-round.ts'
import { deleteAtRest, getAtRest } from './drill.ts'
import type { DrillContext } from './drill.ts'

/** More than `_purged_infos_limit`. */
const documents = 4
const exchangedMs = 6000
/** Longer than the pause between two rounds of the upkeep. */
const roundMs = 400_000
/** Longer than a round of the upkeep. */
const upkeepMs = 1000

/**
 * In a new database, a node whose disk has no space for documents keeps its links and applies no purge, while documents
 * are purged through others, together or one by one. More is purged than `_purged_infos_limit` allows, and the upkeep
 * runs. When the disk has space again, no node has the documents.
 */
export async function unseenPurgesDrill({ dice, disks, world }: DrillContext): Promise<Findings> {
  const name = `unseen${dice.seed()}`
  const database = `/${name}`
  const { status } = await world.send(dice.pick(world.nodes).number, 'PUT', `${database}?q=1&n=3`)
  if (status !== 201) return deleted()
  const [shard] = world.node(1).inside!.control.state()!.databases.get(name)!.shards
  const hosts = world.nodes.filter(node => shard!.replicas.some(replica => replica.node === node.name))
  const lagging = dice.pick(hosts)
  const others = world.nodes.filter(node => node !== lagging).map(({ number }) => number)
  await world.send(dice.pick(others), 'PUT', `${database}/_purged_infos_limit`, 1)
  const written = new Map<string, string>()
  for (let count = 0; count < documents; count++) {
    const id = `drill${dice.seed()}`
    const answer = await world.write(dice.pick(others), name, id, { drill: 'purged' })
    if (answer.status === 201) written.set(id, answer.body.rev)
  }
  await world.converge(name)
  const trouble = disks.of(lagging)
  Object.assign(trouble, { full: true, store: documentStoreName })
  const findings: string[] = []
  const purged: string[] = []
  const each = [...written].map(([id, revision]) => ({ [id]: [revision] }))
  for (const request of dice.chance(0.5) ? each : [Object.assign({}, ...each)]) {
    const answer = await world.send(dice.pick(others), 'POST', `${database}/_purge`, request)
    if (answer.status !== 201) continue
    for (const id of Object.keys(request)) {
      if (answer.body.purged[id]?.length === 1) purged.push(id)
      else findings.push(`a purge of ${Object.keys(request)} was answered 201, and did not remove ${id}`)
    }
  }
  await world.sleep(exchangedMs)
  await suspendFor(world, roundMs)
  await world.sleep(upkeepMs)
  Object.assign(trouble, { full: false, store: undefined })
  await world.allReady()
  await world.converge(name)
  for (const id of purged) {
    for (const node of world.nodes) {
      const answer = await getAtRest(world, node.number, `${database}/${id}`)
      if (answer.status === 404) continue
      findings.push(`${node.name} answered ${answer.status} for ${id}, which was purged while the disk of `
        + `${lagging.name} was full`)
    }
  }
  return deleted(findings)

  async function deleted(found: Findings = []): Promise<Findings> {
    await deleteAtRest(world, dice.pick(world.nodes).number, database)
    return found
  }
}
