import type { ShardId } from '@sectional/core'
import { activeReplicas } from '../control/cluster-state.ts'
import type { ClusterState, DatabaseRecord, ShardRecord } from '../control/cluster-state.ts'

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

export function shardKey({ incarnation, range }: ShardId): string {
  return `${incarnation}/${range.begin}-${range.end}`
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
  readonly #databases = new Map<string, { readonly record: DatabaseRecord; readonly shards: readonly HostedShard[] }>()
  readonly #shards = new Map<string, HostedShard>()

  constructor(node: string) {
    this.#node = node
  }

  /** Takes over a state; a database whose record did not change costs nothing. Returns what became different. */
  update(state: ClusterState): HostedShardsChange {
    const added: HostedShard[] = []
    const changed: HostedShard[] = []
    const removed: HostedShard[] = []
    const incarnations = new Set<string>()
    for (const record of state.databases.values()) {
      incarnations.add(record.incarnation)
      const known = this.#databases.get(record.incarnation)
      if (known?.record === record) continue
      const shards = record.shards.flatMap(shard => this.#hosted(record, shard))
      const keys = new Set(shards.map(shard => shard.key))
      for (const shard of known?.shards ?? []) if (!keys.has(shard.key)) removed.push(shard)
      for (const shard of shards) {
        const before = this.#shards.get(shard.key)
        if (before === undefined) added.push(shard)
        else if (before.record !== shard.record) changed.push(shard)
      }
      this.#databases.set(record.incarnation, { record, shards })
      for (const shard of shards) this.#shards.set(shard.key, shard)
    }
    for (const [incarnation, { shards }] of this.#databases) {
      if (incarnations.has(incarnation)) continue
      removed.push(...shards)
      this.#databases.delete(incarnation)
    }
    for (const { key } of removed) this.#shards.delete(key)
    return { added, changed, removed }
  }

  get(key: string): HostedShard | undefined {
    return this.#shards.get(key)
  }

  /** Its database is known, and nobody else has a replica of it. */
  isAlone(id: ShardId): boolean {
    return this.#databases.has(id.incarnation) && !this.#shards.has(shardKey(id))
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
