/** Bounds of anti-entropy. Milliseconds, counts and bytes. */
export interface AntiEntropyOptions {
  /** A shard that saw no write for so long is pushed to its peers ... */
  readonly pushQuietMs: number
  /** ... and one that is written all the time after so long. */
  readonly pushDelayMaxMs: number
  /** A peer that is known to lack a write is pushed to after so long. */
  readonly pushMissedMs: number
  /** Pairs of replicas that are not known to be equal are looked at so often, give or take a quarter. */
  readonly slowClockMs: number
  /** Passes under way at a time. */
  readonly passesMax: number
  /** Pulls that failed are tried again after so long. */
  readonly catchUpRetryMs: number
  /** A replica that could not catch up within so long decides edits again. */
  readonly catchUpMaxMs: number
  /** What kept the repair of a damaged replica back is looked at again after so long. */
  readonly repairRetryMs: number
  /** Each pair of replicas is compared by digests so often; 0: never. */
  readonly digestIntervalMs: number
  readonly digestBuckets: number
  /**
   * Below this `_revs_limit` a replica may cut off a revision that another one holds for a branch of its own, and no pass
   * tells: pairs are compared by digests on the slow clock while either side changes.
   */
  readonly shortHistoryRevs: number
  /** Rows of one question to the target, and documents of one write to it. */
  readonly batchDocumentsMax: number
  /** Body bytes of one write to the target; a single larger document travels alone. */
  readonly batchBytesMax: number
  /** Rows that the target had already, after which progress is recorded all the same. */
  readonly checkpointRows: number
  /** One call on a replica, and one page of a scan. */
  readonly callTimeoutMs: number
}

export const defaultAntiEntropyOptions: AntiEntropyOptions = Object.freeze({
  pushQuietMs: 2_000,
  pushDelayMaxMs: 30_000,
  pushMissedMs: 1_000,
  slowClockMs: 60_000,
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
