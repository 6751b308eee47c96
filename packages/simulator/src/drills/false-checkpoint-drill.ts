import { shardKey } from '@sectional/core'
import type { CallContext, DocumentRevision, ShardId } from '@sectional/core'
import type { Findings } from '../checkers/final-state.ts'
import { diskCall, openDisk } from '../checkers/disk-contents.ts'
import type { SimulatedNode } from '../world/simulated-node.ts'
import type { DrillContext } from './drill.ts'
import { pickShard } from './shard-roles.ts'

const documentsMax = 6
const settleMs = 5000
const aheadMax = 1000
/** Less than the interval of the checks that would also find the difference. */
const comparedMs = 15_000
const call: CallContext = { timeoutMs: 10_000 }

/**
 * A replica has documents that the others take for copied, as after a bug or a restored backup: their checkpoints are
 * ahead. A node that was not shut down cleanly compares its replicas by digests, and gets these documents. After the
 * next checks all replicas have them.
 */
export async function falseCheckpointDrill(context: DrillContext): Promise<Findings> {
  const { database, dice, world } = context
  const { ids: [known, ...ids], roles, shard } = pickShard(context, dice.integer(2, documentsMax))
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
  await world.start(crashes.number)
  await world.ready()
  await world.sleep(comparedMs)
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
