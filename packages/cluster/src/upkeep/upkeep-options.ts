/** Limits of a node's upkeep. Times are in milliseconds. */
export interface UpkeepOptions {
  /** Interval between two rounds over this node's shards, plus or minus a quarter. */
  readonly intervalMs: number
  /** Number of shards after which upkeep pauses; most of them need no work. */
  readonly shardsPerRest: number
  /** Tombstones that are purged in one call, after which upkeep pauses. */
  readonly purgeBatchMax: number
  readonly restMs: number
  readonly callTimeoutMs: number
}

export const defaultUpkeepOptions: UpkeepOptions = Object.freeze({
  intervalMs: 300_000,
  shardsPerRest: 200,
  purgeBatchMax: 250,
  restMs: 100,
  callTimeoutMs: 60_000,
})
