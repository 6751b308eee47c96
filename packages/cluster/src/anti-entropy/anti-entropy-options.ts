/** Limits of anti-entropy. Times are in milliseconds, sizes in bytes. */
export interface AntiEntropyOptions {
  /** A shard is pushed to its peers after this time without writes. */
  readonly pushQuietMs: number
  /** A shard that is written all the time is pushed after this time. */
  readonly pushDelayMaxMs: number
  /** Time until a push to a peer that is known to lack a write. */
  readonly pushMissedMs: number
  /** Interval at which pairs of replicas that are not known to be equal are checked, plus or minus a quarter. */
  readonly periodicPassMs: number
  /** Largest number of concurrent passes. */
  readonly passesMax: number
  /** Time until failed pulls are tried again. */
  readonly catchUpRetryMs: number
  /** A replica that could not catch up within this time decides edits again. */
  readonly catchUpMaxMs: number
  /** Time until the repair of a damaged replica is tried again after something prevented it. */
  readonly repairRetryMs: number
  /** Interval at which each pair of replicas is compared by digests; 0: never. */
  readonly digestIntervalMs: number
  readonly digestBuckets: number
  /**
   * Below this `_revs_limit` a replica may drop an ancestor that another replica still holds as a leaf of a branch, and
   * no pass detects this. Pairs of such databases are compared by digests in each periodic pass while either
   * replica changes.
   */
  readonly shortHistoryRevs: number
  /** Rows in one question to the target, and documents in one write to it. */
  readonly batchDocumentsMax: number
  /** Bytes of the bodies in one write to the target. A single larger document is sent alone. */
  readonly batchBytesMax: number
  /** Number of rows that the target already had, after which a checkpoint is written nevertheless. */
  readonly checkpointRows: number
  /** Time limit of one call to a replica and of one page of a scan. */
  readonly callTimeoutMs: number
}

export const defaultAntiEntropyOptions: AntiEntropyOptions = Object.freeze({
  pushQuietMs: 2_000,
  pushDelayMaxMs: 30_000,
  pushMissedMs: 1_000,
  periodicPassMs: 60_000,
  passesMax: 4,
  catchUpRetryMs: 2_000,
  catchUpMaxMs: 300_000,
  repairRetryMs: 5_000,
  digestIntervalMs: 3_600_000,
  digestBuckets: 1_024,
  shortHistoryRevs: 100,
  batchDocumentsMax: 500,
  batchBytesMax: 4 * 1024 * 1024,
  checkpointRows: 10_000,
  callTimeoutMs: 60_000,
})
