/**
 * Computes where replicas are placed. The functions are pure in the members and a seed, so that every node computes the
 * same placement.
 */
import { compareRanges, shardRanges } from '@sectional/core'
import { activeReplicas } from './cluster-state.ts'
import type { DatabaseRecord, NodeRecord, ReplicaRecord, ShardRecord } from './cluster-state.ts'

export type Members = Readonly<Record<string, NodeRecord>>

/**
 * Places q ranges with n replicas each (fewer while there are fewer members). The members are sorted, rotated by
 * `seed`, and take the ranges in turn. Each range starts one node further, so that the first nodes of the replica
 * order, which decide edits, are spread over the members too. Replicas of a range are spread over as many zones as
 * possible.
 */
export function placeShards(
  members: Members, wanted: { readonly q: number; readonly n: number; readonly seed: number },
): readonly ShardRecord[] {
  const ring = Object.keys(members).sort()
  return shardRanges(wanted.q).map((range, at) => {
    const order = rotate(ring, wanted.seed + at)
    const chosen: string[] = []
    while (chosen.length < Math.min(wanted.n, ring.length)) chosen.push(nextNode(members, order, chosen))
    return { range, replicas: chosen.map(node => ({ node, filling: false })) }
  })
}

/** Returns whether some shard has fewer replicas than the members could hold. */
export function lacksReplicas(members: Members, database: DatabaseRecord): boolean {
  const possible = Math.min(database.n, Object.keys(members).length)
  return database.shards.some(shard => shard.replicas.length < possible)
}

/** Adds the lacking replicas, as `filling`, on the nodes that have the fewest replicas of this database. */
export function extendDatabase(members: Members, database: DatabaseRecord): DatabaseRecord {
  if (!lacksReplicas(members, database)) return database
  const possible = Math.min(database.n, Object.keys(members).length)
  const load = countReplicas(database)
  const shards = [...database.shards].sort((a, b) => compareRanges(a.range, b.range)).map(shard => {
    const replicas = [...shard.replicas]
    while (replicas.length < possible) {
      const taken = replicas.map(replica => replica.node)
      const order = Object.keys(members).sort((a, b) => (load.get(a) ?? 0) - (load.get(b) ?? 0) || (a < b ? -1 : 1))
      const node = nextNode(members, order, taken)
      load.set(node, (load.get(node) ?? 0) + 1)
      // Without a counting replica there is nothing to fill from, so the new replica counts at once.
      replicas.push({ node, filling: replicas.some(replica => !replica.filling) })
    }
    return { range: shard.range, replicas }
  })
  return { ...database, shards }
}

/** Removes a node from a database's shards and adds replicas on other nodes where there are any. */
export function removeFromDatabase(members: Members, database: DatabaseRecord, node: string): DatabaseRecord {
  if (!hosts(database, node)) return database
  const shards = database.shards.map(shard =>
    withActive({ ...shard, replicas: shard.replicas.filter(replica => replica.node !== node) }))
  return extendDatabase(members, { ...database, shards })
}

/**
 * Marks the node's replicas, which are empty, as filling. Where no other replica has the documents, the replica counts
 * at once.
 */
export function refillNode(database: DatabaseRecord, node: string): DatabaseRecord {
  if (!hosts(database, node)) return database
  const shards = database.shards.map(shard =>
    withActive({ ...shard, replicas: shard.replicas.map(replica =>
      replica.node === node ? { node, filling: true } : replica) }, node))
  return { ...database, shards }
}

/** The replica counts towards quorums from now on. */
export function fillReplica(database: DatabaseRecord, range: ShardRecord['range'], node: string): DatabaseRecord {
  return withFilling(database, range, node, false)
}

/** The replica does not count towards quorums until it is filled again. */
export function markFilling(database: DatabaseRecord, range: ShardRecord['range'], node: string): DatabaseRecord {
  return withFilling(database, range, node, true)
}

function withFilling(
  database: DatabaseRecord, range: ShardRecord['range'], node: string, filling: boolean,
): DatabaseRecord {
  const shards = database.shards.map(shard => compareRanges(shard.range, range) !== 0 ? shard
    : { ...shard, replicas: shard.replicas.map(replica => replica.node === node ? { node, filling } : replica) })
  return { ...database, shards }
}

export function hosts(database: DatabaseRecord, node: string): boolean {
  return database.shards.some(shard => shard.replicas.some(replica => replica.node === node))
}

/** Returns the first node of the order that is not taken and whose zone has the fewest taken nodes. */
function nextNode(members: Members, order: readonly string[], taken: readonly string[]): string {
  const inZone = (node: string): number => taken.filter(other => members[other]?.zone === members[node]?.zone).length
  const free = order.filter(node => !taken.includes(node))
  const best = free.reduce<string | undefined>(
    (found, node) => found === undefined || inZone(node) < inZone(found) ? node : found, undefined,
  )
  if (best === undefined) throw new Error('placement: more replicas than members')
  return best
}

/**
 * Ensures that a shard has a counting replica: without one nothing could be read or filled. If none is left, one
 * replica (`preferred` if it exists) is made to count.
 */
function withActive(shard: ShardRecord, preferred?: string): ShardRecord {
  if (shard.replicas.length === 0 || activeReplicas(shard).length > 0) return shard
  const heir = shard.replicas.some(replica => replica.node === preferred) ? preferred : shard.replicas[0]?.node
  return {
    ...shard,
    replicas: shard.replicas.map((replica): ReplicaRecord =>
      replica.node === heir ? { ...replica, filling: false } : replica),
  }
}

function countReplicas(database: DatabaseRecord): Map<string, number> {
  const load = new Map<string, number>()
  for (const shard of database.shards) for (const { node } of shard.replicas) load.set(node, (load.get(node) ?? 0) + 1)
  return load
}

function rotate<T>(items: readonly T[], by: number): readonly T[] {
  const start = items.length === 0 ? 0 : by % items.length
  return [...items.slice(start), ...items.slice(0, start)]
}
