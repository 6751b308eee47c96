import { shardKey, type ShardId } from '@sectional/core'
import { activeReplicas } from '../control/cluster-state.ts'
import type { ClusterState, DatabaseRecord, ShardRecord } from '../control/cluster-state.ts'
import { DatabaseMap } from '../control/database-map.ts'

/** A shard with a replica on this node, and where its other replicas are. */
export interface HostedShard {
  readonly key: string
  readonly id: ShardId
  readonly db: DatabaseRecord
  readonly record: ShardRecord
  /** Nodes of the other replicas, filling ones included. */
  readonly peers: readonly string[]
  /** Those of them that count towards quorums. */
  readonly activePeers: readonly string[]
  /** This node's replica still fetches the documents. */
  readonly filling: boolean
}

export interface HostedShardsChange {
  readonly added: readonly HostedShard[]
  /** Their replicas changed. */
  readonly changed: readonly HostedShard[]
  readonly removed: readonly HostedShard[]
}

/** The shards of this node that have replicas elsewhere, as of the last cluster state. */
export class HostedShards {
  readonly #node: string
  readonly #shards = new Map<string, HostedShard>()
  #databases: ClusterState['databases'] = DatabaseMap.from([])

  constructor(node: string) {
    this.#node = node
  }

  get size(): number { return this.#shards.size }

  /** Takes over a state; a database whose record did not change costs nothing. Returns what became different. */
  update({ databases }: ClusterState): HostedShardsChange {
    const added: HostedShard[] = []
    const changed: HostedShard[] = []
    const removed: HostedShard[] = []
    for (const { before, after } of DatabaseMap.changed(this.#databases, databases)) {
      const shards = after === undefined ? [] : after.shards.flatMap(shard => this.#hosted(after, shard))
      const keys = new Set(shards.map(shard => shard.key))
      for (const shard of before === undefined ? [] : this.of(before)) if (!keys.has(shard.key)) removed.push(shard)
      for (const shard of shards) {
        const known = this.#shards.get(shard.key)
        if (known === undefined) added.push(shard)
        else if (known.record !== shard.record) changed.push(shard)
        this.#shards.set(shard.key, shard)
      }
    }
    for (const { key } of removed) this.#shards.delete(key)
    this.#databases = databases
    return { added, changed, removed }
  }

  /** The shards of one database. */
  of({ incarnation, shards }: DatabaseRecord): HostedShard[] {
    return shards.flatMap(({ range }) => this.#shards.get(shardKey({ incarnation, range })) ?? [])
  }

  get(key: string): HostedShard | undefined {
    return this.#shards.get(key)
  }

  /** Replicas of this node that are being filled. */
  filling(): number {
    let count = 0
    for (const shard of this.#shards.values()) if (shard.filling) count++
    return count
  }

  /** Its database is known, and nobody else has a replica of it. */
  isAlone(id: ShardId): boolean {
    return DatabaseMap.withIncarnation(this.#databases, id.incarnation) !== undefined && !this.#shards.has(shardKey(id))
  }

  all(): IterableIterator<HostedShard> {
    return this.#shards.values()
  }

  #hosted(db: DatabaseRecord, record: ShardRecord): HostedShard[] {
    const own = record.replicas.find(replica => replica.node === this.#node)
    const others = record.replicas.filter(replica => replica.node !== this.#node)
    if (own === undefined || others.length === 0) return []
    const id = { incarnation: db.incarnation, range: record.range }
    const activePeers = activeReplicas(record).filter(replica => replica.node !== this.#node).map(replica => replica.node)
    return [{ key: shardKey(id), id, db, record, peers: others.map(replica => replica.node), activePeers, filling: own.filling }]
  }
}
