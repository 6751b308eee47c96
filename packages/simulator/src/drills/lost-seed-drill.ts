import type { Findings } from '../checkers/final-state.ts'
import type { SimulatedNode } from '../world/simulated-node.ts'
import { DrillDocuments, readLatest } from './drill.ts'
import type { DrillContext } from './drill.ts'

export const firstSeed = 1
const awayMs = 1000
const watchedMs = 500
/** The disk of the leader is so slow that others learn what is decided before the leader carries it out. */
const slowMs = 800
/** Milliseconds between changes of the metadata, so that the leader always has something to write. */
const changeMs = 60
const changeMsMax = 5000
/** The default, which every database keeps. */
const purgedInfosLimit = 1000
const forgottenMsMax = 20_000
const leaderMsMax = 60_000
const pollMs = 5

/**
 * The first seed loses its disk while the other nodes run. It joins them, also when its seed list has no other host,
 * and is filled. The leader may crash just after it was decided that the lost disk does not count any more.
 * (`metadata-log` finds a second cluster, and `consensus-rules` a voter that has forgotten its votes.)
 */
export async function lostSeedDrill(context: DrillContext): Promise<Findings> {
  const { database, dice, disks, number, world } = context
  const documents = new DrillDocuments(context)
  await documents.make()
  await world.converge(database)
  world.crash(number)
  disks.lose(world.node(number))
  await world.sleep(dice.wait(awayMs))
  const edited = await documents.edit()
  if (dice.chance(0.5)) await whileLeadersChange(context)
  else await world.start(number)
  await world.ready()
  await world.converge(database)
  return readLatest(context, edited, number, watchedMs)
}

/**
 * Starts the node. The leader crashes when another node knows that the disk was lost, and before it has removed the
 * node from the voters. The node asks the next leader at once.
 */
async function whileLeadersChange({ database, disks, number, others, world }: DrillContext): Promise<void> {
  const nodes = others.map(other => world.node(other))
  await world.eventually('a leader', leaderMsMax, async () => world.leader(nodes) === undefined ? 'none yet' : null)
  const [lost, leader] = [world.node(number), world.leader(nodes)!]
  // The drilled database may have no replica on this node.
  const hasForgotten = (node: SimulatedNode): boolean =>
    [...node.inside?.control.state()?.databases.values() ?? []].some(({ shards }) => shards.some(({ replicas }) =>
      replicas.some(replica => replica.node === lost.name && replica.filling)))
  disks.of(leader).slowMs = slowMs
  await world.start(number)
  const endMs = world.nowMs + forgottenMsMax
  const changes: Promise<unknown>[] = []
  while (world.nowMs < endMs && !nodes.some(node => node !== leader && hasForgotten(node))) {
    if (world.nowMs > endMs - forgottenMsMax + changes.length * changeMs) {
      changes.push(world.send(
        leader.number, 'PUT', `/${database}/_purged_infos_limit`, purgedInfosLimit, { timeoutMs: changeMsMax },
      ))
    }
    await world.sleep(pollMs)
  }
  world.crash(leader.number)
  await world.start(leader.number)
  world.moments.onceLeading(() => {
    world.crash(number)
    void world.start(number)
  })
  // The node may be a voter again, and lead, when it was not seen that its disk was forgotten.
  await world.eventually('another leader', leaderMsMax, async () => world.leader() === undefined ? 'none yet' : null)
  await world.sleep(slowMs)
  world.moments.cancel()
  await Promise.all(changes)
  disks.of(leader).slowMs = 0
}
