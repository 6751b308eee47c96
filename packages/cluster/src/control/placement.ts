/** Where replicas lie: pure functions of the members and a seed, so that every node computes the same. */
import { compareRanges, shardRanges } from '@sectional/core'
import { activeReplicas } from './cluster-state.ts'
import type { DatabaseRecord, NodeRecord, ReplicaRecord, ShardRecord } from './cluster-state.ts'

export type Members = Readonly<Record<string, NodeRecord>>

/**
 * Places q ranges with n replicas each (fewer while there are fewer members): the members, sorted and rotated to
 * a start that `seed` picks, take the ranges in turn. Each range starts one node further, so that the nodes that
 * come first in the order, which decide edits, are spread too. Zones are spread as far as they go.
 */
export function placeShards(members: Members, wanted: { readonly q: number; readonly n: number; readonly seed: number }): readonly ShardRecord[] {
  const ring = Object.keys(members).sort()
  return shardRanges(wanted.q).map((range, at) => {
    const order = rotate(ring, wanted.seed + at)
    const chosen: string[] = []
    while (chosen.length < Math.min(wanted.n, ring.length)) chosen.push(nextNode(members, order, chosen))
    return { range, replicas: chosen.map(node => ({ node, filling: false })) }
  })
}

/** Whether more replicas of some shard are wanted than there are, and nodes for them. */
export function lacksReplicas(members: Members, database: DatabaseRecord): boolean {
  const possible = Math.min(database.n, Object.keys(members).length)
  return database.shards.some(shard => shard.replicas.length < possible)
}

/** Adds the replicas that are lacking, as `filling`: on the nodes that have the fewest replicas of this database. */
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
      // With nobody to fill from, it is as good as any other.
      replicas.push({ node, filling: replicas.some(replica => !replica.filling) })
    }
    return { range: shard.range, replicas }
  })
  return { ...database, shards }
}

/** Takes a node out of a database's map, and puts others in its place where there are any. */
export function removeFromDatabase(members: Members, database: DatabaseRecord, node: string): DatabaseRecord {
  if (!hosts(database, node)) return database
  const shards = database.shards.map(shard => withActive({ ...shard, replicas: shard.replicas.filter(replica => replica.node !== node) }))
  return extendDatabase(members, { ...database, shards })
}

/** The node's replicas are empty: they are filled again before they count, unless nobody else has the documents. */
export function refillNode(database: DatabaseRecord, node: string): DatabaseRecord {
  if (!hosts(database, node)) return database
  const shards = database.shards.map(shard => withActive({ ...shard, replicas: shard.replicas.map(replica => replica.node === node ? { node, filling: true } : replica) }, node))
  return { ...database, shards }
}

/** The replica counts from now on. */
export function fillReplica(database: DatabaseRecord, range: ShardRecord['range'], node: string): DatabaseRecord {
  return withFilling(database, range, node, false)
}

/** The replica no longer counts until it is filled. */
export function markFilling(database: DatabaseRecord, range: ShardRecord['range'], node: string): DatabaseRecord {
  return withFilling(database, range, node, true)
}

function withFilling(database: DatabaseRecord, range: ShardRecord['range'], node: string, filling: boolean): DatabaseRecord {
  const shards = database.shards.map(shard => compareRanges(shard.range, range) !== 0 ? shard
    : { ...shard, replicas: shard.replicas.map(replica => replica.node === node ? { node, filling } : replica) })
  return { ...database, shards }
}

export function hosts(database: DatabaseRecord, node: string): boolean {
  return database.shards.some(shard => shard.replicas.some(replica => replica.node === node))
}

/** The first node of the order that is not taken and whose zone has the fewest of those taken. */
function nextNode(members: Members, order: readonly string[], taken: readonly string[]): string {
  const inZone = (node: string): number => taken.filter(other => members[other]?.zone === members[node]?.zone).length
  const free = order.filter(node => !taken.includes(node))
  const best = free.reduce<string | undefined>((found, node) => found === undefined || inZone(node) < inZone(found) ? node : found, undefined)
  if (best === undefined) throw new Error('placement: more replicas than members')
  return best
}

/** A shard whose last counting replica went: one of those left (preferably `preferred`) counts, or nothing could ever be read or filled. */
function withActive(shard: ShardRecord, preferred?: string): ShardRecord {
  if (shard.replicas.length === 0 || activeReplicas(shard).length > 0) return shard
  const heir = shard.replicas.some(replica => replica.node === preferred) ? preferred : shard.replicas[0]?.node
  return { ...shard, replicas: shard.replicas.map((replica): ReplicaRecord => replica.node === heir ? { ...replica, filling: false } : replica) }
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
