import { shardKey } from '@sectional/core'
import type { ReplicaCheckpoint, ShardId } from '@sectional/core'

/** A replica that has all changes of these positions has all writes up to that number. */
export interface ReceiptProof { readonly upTo: number; readonly positions: readonly ReplicaCheckpoint[] }

/** The writes that this node has acknowledged and that one replica has not confirmed. */
interface Lag {
  /** The stores that are under way, by the number of their write, oldest first. */
  readonly stores: Set<number>
  /** The number of the oldest write that the replica failed to store; 0: none is known. */
  missedFrom: number
  /** The number of the newest write that it failed to store. */
  missedTo: number
  /** Monotonic time in milliseconds of the last failure. */
  missedAt: number
  /** Monotonic time in milliseconds at which the replica was last asked for a proof. */
  askedAt: number
  proof: ReceiptProof | undefined
}

/** The lags of the replicas of one shard that have one, by node. */
type ShardLags = Map<string, Lag>

/** Number of shards that are remembered; each needs about 200 bytes, and 300 for each lag. The oldest is forgotten. */
const shardsMax = 10_000

/**
 * Remembers which replicas lack writes that this node has acknowledged to clients. A write is acknowledged when w
 * replicas have it, so another replica may receive it later, or may fail to store it. A reader that must see these
 * writes and asks one replica only can then choose a replica that has them.
 *
 * Acknowledged writes are numbered. A reader needs the writes up to the number at which it began (`newest`), so that
 * writes which come meanwhile do not keep it waiting. The memory is lost with the process.
 */
export class UnconfirmedWrites {
  readonly #now: () => number
  readonly #shards = new Map<string, ShardLags>()
  /** The same by the objects that callers pass, because making the key costs more than the rest. */
  readonly #byObject = new WeakMap<ShardId, ShardLags>()
  #change: PromiseWithResolvers<void> | undefined
  #newest = 0

  /** @param now monotonic time in milliseconds */
  constructor(now: () => number) {
    this.#now = now
  }

  /** The number of the last acknowledged write that a replica had not confirmed then. */
  get newest(): number {
    return this.#newest
  }

  /**
   * Records that a write is acknowledged although a replica has not confirmed it.
   *
   * @param stored whether the replica has stored it in the end; never rejects
   */
  acknowledged(shard: ShardId, node: string, stored: Promise<boolean>): void {
    const number = ++this.#newest
    const lags = this.#lagsOf(shard)
    let lag = lags.get(node)
    if (lag === undefined) lags.set(node, lag = noLag())
    lag.stores.add(number)
    void stored.then(isStored => {
      lag.stores.delete(number)
      if (!isStored) {
        lag.missedFrom = lag.missedFrom === 0 ? number : Math.min(lag.missedFrom, number)
        lag.missedTo = Math.max(lag.missedTo, number)
        lag.missedAt = this.#now()
      }
      this.#settle(lags, node, lag)
    })
  }

  /** Returns true when the replica may lack an acknowledged write with at most that number. */
  isBehind(shard: ShardId, node: string, number: number): boolean {
    const lag = this.#lagsOf(shard).get(node)
    if (lag === undefined) return false
    const [oldest = Infinity] = lag.stores
    return oldest <= number || (lag.missedFrom > 0 && lag.missedFrom <= number)
  }

  /**
   * Returns true when a replica that is behind will probably have the writes soon: stores are under way, or its last
   * failure is so recent that anti-entropy may be about to bring the writes.
   */
  isCatchingUp(shard: ShardId, node: string, withinMs: number): boolean {
    const lag = this.#lagsOf(shard).get(node)
    return lag !== undefined && (lag.missedFrom === 0 || this.#now() - lag.missedAt < withinMs)
  }

  /**
   * Returns true when the replica has failed to store a write, is not known to have received it since, and was not
   * asked within `intervalMs`. The caller then asks it.
   */
  mayAsk(shard: ShardId, node: string, intervalMs: number): boolean {
    const lag = this.#lagsOf(shard).get(node)
    if (lag === undefined || lag.missedFrom === 0 || this.#now() - lag.askedAt < intervalMs) return false
    lag.askedAt = this.#now()
    return true
  }

  /**
   * Returns what proves that the replica has received what it missed. It is kept until it was proved, because the
   * positions of other replicas advance with each write.
   *
   * @param positions returns the positions of all other replicas of the shard
   * @returns undefined when nothing needs a proof
   */
  async proof(
    shard: ShardId, node: string, positions: () => Promise<readonly ReplicaCheckpoint[]>,
  ): Promise<ReceiptProof | undefined> {
    const lag = this.#lagsOf(shard).get(node)
    if (lag === undefined || lag.proof !== undefined) return lag?.proof
    // Two of these may run at once. Each belongs to the writes that were missed when it began.
    const upTo = lag.missedTo
    const made = { upTo, positions: await positions() }
    return lag.proof ??= made
  }

  /** Records that the replica has all changes of the positions of a proof. */
  proved(shard: ShardId, node: string, proof: ReceiptProof): void {
    const lags = this.#lagsOf(shard)
    const lag = lags.get(node)
    if (lag === undefined || lag.missedFrom === 0 || lag.missedFrom > proof.upTo) return
    lag.missedFrom = lag.missedTo > proof.upTo ? proof.upTo + 1 : 0
    lag.proof = undefined
    this.#settle(lags, node, lag)
  }

  /** Resolves when a replica has stored, failed to store or received a write. */
  changed(): Promise<void> {
    return (this.#change ??= Promise.withResolvers()).promise
  }

  #lagsOf(shard: ShardId): ShardLags {
    let lags = this.#byObject.get(shard)
    if (lags !== undefined) return lags
    const key = shardKey(shard)
    lags = this.#shards.get(key)
    if (lags === undefined) {
      this.#shards.set(key, lags = new Map())
      if (this.#shards.size > shardsMax) this.#shards.delete(this.#shards.keys().next().value!)
    }
    this.#byObject.set(shard, lags)
    return lags
  }

  #settle(lags: ShardLags, node: string, lag: Lag): void {
    if (lag.stores.size === 0 && lag.missedFrom === 0 && lags.get(node) === lag) lags.delete(node)
    const change = this.#change
    this.#change = undefined
    change?.resolve()
  }
}

function noLag(): Lag {
  return { stores: new Set(), missedFrom: 0, missedTo: 0, missedAt: 0, askedAt: -Infinity, proof: undefined }
}
