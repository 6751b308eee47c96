import { shardKey } from '@sectional/core'
import type { CallContext, DocumentRevision, ShardId } from '@sectional/core'
import type { Findings } from '../checkers/final-state.ts'
import { diskCall, openDisk } from '../checkers/disk-contents.ts'
import type { SimulatedNode } from '../world/simulated-node.ts'
import type { DrillContext } from './drill.ts'
import { pickShard } from './shard-roles.ts'

/** Many documents are compared in another way than few. */
const unknownCounts = [1, 2, 3, 6]
const settleMs = 5000
const aheadMax = 1000
const linkedMsMax = 60_000
const comparedMsMax = 60_000
const call: CallContext = { timeoutMs: 10_000 }

/**
 * A replica has documents that the others take for copied, as after a bug or a restored backup: their checkpoints are
 * ahead. A node that was not shut down cleanly compares its replicas by digests, and gets these documents. After the
 * next checks all replicas have them.
 *
 * The node is linked with the replica first that has the documents. A majority without it would suffice for catching
 * up, because no majority has acknowledged these documents.
 */
export async function falseCheckpointDrill(context: DrillContext): Promise<Findings> {
  const { database, dice, world } = context
  const { ids: [known, ...ids], roles, shard } = await pickShard(context, 1 + dice.pick(unknownCounts))
  const [holder, crashes, third] = dice.sample([roles.decider, roles.standIn, roles.third], 3)
    .map(number => world.node(number)) as [SimulatedNode, SimulatedNode, SimulatedNode]
  await world.write(roles.decider, database, known!, { drill: 'known to all' })
  await world.sleep(settleMs)
  const { revsLimit } = world.node(1).inside!.control.state()!.databases.get(database)!
  const replicaOf = (node: SimulatedNode) => world.moments.replicaOf(node, shard)
  if ([holder, crashes, third].some(node => replicaOf(node) === undefined)) return []
  world.moments.falsified.add(shardKey(shard))
  const { history, sequence } = await replicaOf(holder)!.upkeep.replicaInfo(call)
  for (const node of [crashes, third]) {
    const checkpoint = { history, sequence: sequence + aheadMax }
    await replicaOf(node)!.storeRevisions({ revisions: [], revsLimit, checkpoint }, call)
  }
  const revisions = ids.map((id): DocumentRevision => ({
    id, path: { start: 1, ids: [id.split(':')[0]!.padEnd(32, '0').slice(-32).replace(/[^0-9a-f]/g, 'a')] },
    deleted: false, body: new Uint8Array(Buffer.from('{"drill":"unknown to others"}')),
  }))
  await replicaOf(holder)!.storeRevisions({ revisions, revsLimit }, call)
  world.say(`${holder.name} has ${ids.join(', ')}, which ${crashes.name} and ${third.name} take for copied`)
  world.crash(crashes.number)
  for (const other of world.nodes.filter(node => node !== crashes && node !== holder)) {
    world.cut(crashes.number, other.number)
    world.cut(other.number, crashes.number)
  }
  await world.start(crashes.number)
  if (dice.chance(0.5)) {
    // A stop in order does not end the doubt when the replicas were not compared meanwhile.
    await world.stop(crashes.number)
    await world.start(crashes.number)
  }
  await world.eventually(`${crashes.name} to be linked with ${holder.name}`, linkedMsMax, async () =>
    crashes.inside?.control.connectedNodes().includes(holder.name) ? null : 'not yet')
  world.heal()
  await world.ready()
  // Later checks would find the difference, too.
  await world.eventually(`${crashes.name} to have caught up`, comparedMsMax, async () => {
    const { body, status } = await world.send(crashes.number, 'GET', `/_node/_local/_replicas/${database}`)
    return status === 200 && body.replicas.every((replica: { readonly catching_up?: boolean }) => !replica.catching_up)
      ? null : 'not yet'
  })
  const missing = await missingOn(crashes, shard, ids)
  const findings = missing.length === 0 ? [] : [`${crashes.name}, which was not shut down cleanly, lacks `
    + `${missing.join(', ')}, which ${holder.name} has`]
  await world.converge(database)
  return findings
}

async function missingOn(node: SimulatedNode, shard: ShardId, ids: readonly string[]): Promise<string[]> {
  const replica = (await openDisk(node.disk)).replica(shard)
  const found = await Promise.all(ids.map(id => replica?.openDocument({ id, body: false, tree: false }, diskCall)))
  return ids.filter((_, index) => found[index] == null)
}
