import { shardKey, type ShardId } from '@sectional/core'

/** Number of indexes of shards that are remembered. The oldest is forgotten. */
const entriesMax = 10_000

/**
 * Remembers for each index of a shard the replica that gave the last answer with `update=true`, unless it was the first
 * in the order of the readers. Queries that do not require the newest state read it first, so that a client does not
 * see an older state of a view than before.
 */
export class NewestReaders {
  readonly #nodes = new Map<string, string>()

  /** @param isFirst whether the replica is the first in the order of the readers */
  answered(shard: ShardId, index: string, node: string, isFirst: boolean): void {
    if (isFirst && this.#nodes.size === 0) return
    const key = keyOf(shard, index)
    this.#nodes.delete(key)
    if (isFirst) return
    this.#nodes.set(key, node)
    if (this.#nodes.size > entriesMax) this.#nodes.delete(this.#nodes.keys().next().value!)
  }

  /** Returns the node whose replica is read first; undefined: the order of the readers applies. */
  nodeOf(shard: ShardId, index: string): string | undefined {
    return this.#nodes.size === 0 ? undefined : this.#nodes.get(keyOf(shard, index))
  }
}

function keyOf(shard: ShardId, index: string): string {
  return `${shardKey(shard)} ${index}`
}
