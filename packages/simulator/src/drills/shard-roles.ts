import { documentHash, rangeContains } from '@sectional/core'
import type { ShardId } from '@sectional/core'
import { activeReplicas } from '@sectional/server'
import type { DatabaseRecord, ShardRecord } from '@sectional/server'
import type { World } from '../world/world.ts'
import type { DrillContext } from './drill.ts'

/** The numbers of the nodes with replicas of one shard, in the order in which they are asked to decide. */
export interface ShardRoles {
  readonly decider: number
  readonly standIn: number
  readonly third: number
}

const idAttempts = 400
const replicasMin = 3
const filledMsMax = 120_000

/**
 * Draws a shard of the drilled database. Returns its replicas, and `count` ids of documents in it, or fewer. Replicas
 * that a fault before has damaged are filled first.
 */
export async function pickShard(
  { database, dice, world }: DrillContext, count: number,
): Promise<{ readonly shard: ShardId; readonly roles: ShardRoles; readonly ids: readonly string[] }> {
  const recorded = (): DatabaseRecord => world.node(1).inside!.control.state()!.databases.get(database)!
  await world.eventually(`the replicas of ${database} to be filled`, filledMsMax, async () =>
    recorded().shards.every(shard => activeReplicas(shard).length >= replicasMin) ? null : 'not yet')
  const { incarnation, partitioned, shards } = recorded()
  const record = dice.pick(shards)
  const ids: string[] = []
  for (let attempt = 0; attempt < idAttempts && ids.length < count; attempt++) {
    const id = `drill${dice.seed()}:1`
    if (rangeContains(record.range, documentHash(id, partitioned))) ids.push(id)
  }
  return {
    shard: { incarnation, range: record.range }, roles: rolesIn(world, record), ids,
  }
}

/** Returns the replicas of the shard that has the document, which may be a local one. */
export function rolesOf(world: World, database: string, id: string): ShardRoles {
  const { partitioned, shards } = world.node(1).inside!.control.state()!.databases.get(database)!
  const hash = documentHash(id, partitioned)
  return rolesIn(world, shards.find(({ range }) => rangeContains(range, hash))!)
}

function rolesIn(world: World, shard: ShardRecord): ShardRoles {
  const [decider, standIn, third] = activeReplicas(shard).map(replica =>
    world.nodes.find(node => node.name === replica.node)!.number)
  return { decider: decider!, standIn: standIn!, third: third! }
}
