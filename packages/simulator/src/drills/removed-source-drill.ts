import type { Findings } from '../checkers/final-state.ts'
import { isRemoved } from '../faults/membership-faults.ts'
import type { SimulatedNode } from '../world/simulated-node.ts'
import { deleteAtRest, getAtRest } from './drill.ts'
import type { DrillContext } from './drill.ts'
import { firstSeed } from './lost-seed-drill.ts'
import { report } from './map-change-drill.ts'

const documents = 3
const leaderMsMax = 60_000
const removedMsMax = 60_000
const filledMsMax = 120_000

/**
 * A node is cut off while its replica of a new database is the only one that counts, and is removed from the cluster.
 * One of the other replicas counts then (`metadata-log`), and no document is lost. The node returns as a new member.
 */
export async function removedSourceDrill({ dice, disks, number, others, world }: DrillContext): Promise<Findings> {
  // With an empty disk, the only host of the seed list would form a cluster of its own.
  const leaver = world.node(number === firstSeed ? dice.pick(others) : number)
  const staying = world.nodes.filter(node => node !== leaver)
  const through = dice.pick(staying).number
  const name = `removed${dice.seed()}`
  const { status } = await world.send(through, 'PUT', `/${name}?q=1&n=${world.nodes.length}`)
  if (status !== 201) {
    await deleteAtRest(world, through, `/${name}`)
    return []
  }
  const written: string[] = []
  for (let count = 0; count < documents; count++) {
    const id = `drill${dice.seed()}`
    const answer = await world.write(through, name, id, { drill: 'kept' })
    if (answer.status === 201) written.push(id)
  }
  await world.converge(name)
  world.partition([leaver.number], staying.map(node => node.number))
  await world.eventually('a leader', leaderMsMax, async () => world.leader(staying) === undefined ? 'none yet' : null)
  const leader = (): SimulatedNode => world.leader(staying) ?? staying[0]!
  const { incarnation, shards: [shard] } = world.node(through).inside!.control.state()!.databases.get(name)!
  for (const node of dice.sample(staying, staying.length)) {
    await report(leader(), { incarnation, range: shard!.range }, node.name)
  }
  disks.loseLater(leaver)
  await world.eventually(`${leaver.name} to be removed`, removedMsMax, async () =>
    await isRemoved(leader(), leaver.name) ? null : 'not yet')
  world.crash(leaver.number)
  disks.lose(leaver)
  world.heal()
  await world.start(leaver.number)
  await world.allReady()
  await world.eventually('all replicas to be filled', filledMsMax, async () => {
    const databases = [...world.node(through).inside!.control.state()!.databases.values()]
    return databases.find(({ n, shards }) => shards.some(({ replicas }) =>
      replicas.length < Math.min(n, world.nodes.length) || replicas.some(({ filling }) => filling)))?.name ?? null
  })
  await world.converge(name)
  const findings: string[] = []
  for (const id of written) {
    for (const node of world.nodes) {
      const answer = await getAtRest(world, node.number, `/${name}/${id}`)
      if (answer.status === 200) continue
      findings.push(`${node.name} answered ${answer.status} for ${id}, which had been acknowledged before `
        + `${leaver.name} was removed`)
    }
  }
  await deleteAtRest(world, through, `/${name}`)
  return findings
}
