import { shardKey, type ShardId } from '@sectional/core'
import { activeReplicas } from '../control/cluster-state.ts'
import type { ClusterState, DatabaseRecord, ShardRecord } from '../control/cluster-state.ts'
import { DatabaseMap } from '../control/database-map.ts'

/** A shard with a replica on this node and replicas on other nodes. */
export interface HostedShard {
  readonly key: string
  readonly id: ShardId
  readonly db: DatabaseRecord
  readonly record: ShardRecord
  /** Nodes of the other replicas, including filling ones. */
  readonly peers: readonly string[]
  /** The peers whose replicas count towards quorums. */
  readonly activePeers: readonly string[]
  /** True while this node's replica is being filled. */
  readonly filling: boolean
}

export interface HostedShardsChange {
  readonly added: readonly HostedShard[]
  /** Shards whose replicas changed. */
  readonly changed: readonly HostedShard[]
  readonly removed: readonly HostedShard[]
}

/** The shards of this node that have replicas on other nodes too, according to the last cluster state. */
export class HostedShards {
  readonly #node: string
  readonly #shards = new Map<string, HostedShard>()
  #databases: ClusterState['databases'] = DatabaseMap.from([])

  constructor(node: string) {
    this.#node = node
  }

  get size(): number { return this.#shards.size }

  /** Applies a new state and returns the differences. Only databases whose records changed are read. */
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

  /** Returns the hosted shards of one database. */
  of({ incarnation, shards }: DatabaseRecord): HostedShard[] {
    return shards.flatMap(({ range }) => this.#shards.get(shardKey({ incarnation, range })) ?? [])
  }

  get(key: string): HostedShard | undefined {
    return this.#shards.get(key)
  }

  /** Number of this node's replicas that are being filled. */
  filling(): number {
    let count = 0
    for (const shard of this.#shards.values()) if (shard.filling) count++
    return count
  }

  /** Returns true when the shard's database is known and only this node has a replica of the shard. */
  isAlone(id: ShardId): boolean {
    const db = DatabaseMap.withIncarnation(this.#databases, id.incarnation)
    const record = db?.shards.find(({ range }) => range.begin === id.range.begin && range.end === id.range.end)
    return record?.replicas.every(({ node }) => node === this.#node) ?? false
  }

  all(): IterableIterator<HostedShard> {
    return this.#shards.values()
  }

  #hosted(db: DatabaseRecord, record: ShardRecord): HostedShard[] {
    const own = record.replicas.find(replica => replica.node === this.#node)
    const others = record.replicas.filter(replica => replica.node !== this.#node)
    if (own === undefined || others.length === 0) return []
    const id = { incarnation: db.incarnation, range: record.range }
    const peers = others.map(replica => replica.node)
    const activePeers = activeReplicas(record).map(replica => replica.node).filter(node => node !== this.#node)
    return [{ key: shardKey(id), id, db, record, peers, activePeers, filling: own.filling }]
  }
}
