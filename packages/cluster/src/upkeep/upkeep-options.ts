/** Bounds of a node's upkeep. Milliseconds and counts. */
export interface UpkeepOptions {
  /** This node's shards are looked at so often, give or take a quarter. */
  readonly intervalMs: number
  /** Shards that are looked at, after which upkeep rests: most of them have nothing to be done. */
  readonly shardsPerRest: number
  /** Tombstones purged in one call, after which upkeep rests. */
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
