/** Limits of the coordinator. Times are in milliseconds, sizes in bytes. */
export interface CoordinatorOptions {
  /** Time limit of one call to a replica, where no shorter limit applies. */
  readonly requestTimeoutMs: number
  /** Time limit of one attempt to read from a replica. Afterwards the read ends with the answers of other replicas. */
  readonly readTimeoutMs: number
  /** Time after which another reader is asked in addition to a silent one. */
  readonly readHedgeMs: number
  /** Time that one replica has to decide an edit before the next replica is asked. */
  readonly decisionTimeoutMs: number
  /**
   * Time limit for three steps: reading other replicas before a stand-in decides, reviewing a conflict, and waiting for
   * the last replicas of a purge.
   */
  readonly reviewTimeoutMs: number
  /**
   * A remote replica that owes a decision or a store for this time is probed. When it does not answer the probe within
   * the same time, it counts as silent: another replica decides, and the store is not waited for.
   */
  readonly silenceProbeMs: number
  /** Time that one replica has to make decided revisions durable. */
  readonly storeTimeoutMs: number
  /** Time to wait for one page of a scan before another replica takes over, while there is one. */
  readonly scanPageTimeoutMs: number
  /**
   * Time for which a view query waits for a replica that has failed to store an acknowledged write, since its last
   * failure. Anti-entropy normally brings the write within about a second.
   */
  readonly missedWaitMs: number
  /** Shortest time between two questions to such a replica whether it has received the write. */
  readonly missedPollMs: number
  /** Time for which a node that let a call time out is asked last. */
  readonly suspectMs: number
  /** Largest number of edits or revisions in one call to a replica. */
  readonly batchDocumentsMax: number
  /** Bytes of bodies in one call to a replica. A single larger document is sent alone. */
  readonly batchBytesMax: number
  /** Largest number of concurrent stores to one node. Further ones are left to anti-entropy. */
  readonly nodeStoresMax: number
  readonly nodeStoreBytesMax: number
  /** Largest number of concurrent calls of one request. */
  readonly requestCallsMax: number
  /** Largest number of documents that are being repaired, and that wait for repair. */
  readonly repairsRunningMax: number
  readonly repairsQueuedMax: number
  /** Rows, and bytes of bodies, of one page of a list. */
  readonly listPageRows: number
  readonly listPageBytes: number
  /** Bytes of the pages of all lists together; pages are smaller while many lists are being sent. */
  readonly listPagesBytes: number
  /** Time to wait for the checkpoints of all replicas for an ETag. Replicas that answer later are left out. */
  readonly stateTimeoutMs: number
  /** Time limit of one call that waits for a shard's next change. */
  readonly watchTimeoutMs: number
  /**
   * Largest number of replicas that the changes feeds of this node wait on. A feed that needs one more is refused with
   * 503.
   */
  readonly watchesMax: number
  /**
   * Shortest time between two polls of a replica on which no call may wait, because its link has no room for another
   * one.
   */
  readonly pollIntervalMs: number
  /** Largest number of polls to all replicas together in `pollRoundMs`. */
  readonly pollsPerRound: number
  readonly pollRoundMs: number
  /**
   * When a changes feed has lost every replica of a shard, it looks for one again after `followRetryMs`, and fails
   * after `followPatienceMs`.
   */
  readonly followRetryMs: number
  readonly followPatienceMs: number
  /** Shortest time between two requests of a continuing feed for what its replica has seen of the others. */
  readonly followRefreshMs: number
  /**
   * Age at which what a replica has seen of the others is requested again before a position is sent to a client. Soon
   * after the last write, all replicas then give the same answer.
   */
  readonly standingRefreshMs: number
  /** Rows, and bytes of bodies, of the read that feeds share when a change wakes them at the same position. */
  readonly tailRows: number
  readonly tailBytes: number
}

const MiB = 1024 * 1024

export const defaultCoordinatorOptions: CoordinatorOptions = Object.freeze({
  requestTimeoutMs: 60_000,
  readTimeoutMs: 10_000,
  readHedgeMs: 250,
  decisionTimeoutMs: 5_000,
  reviewTimeoutMs: 1_000,
  silenceProbeMs: 400,
  storeTimeoutMs: 15_000,
  scanPageTimeoutMs: 10_000,
  missedWaitMs: 2_000,
  missedPollMs: 200,
  suspectMs: 5_000,
  batchDocumentsMax: 500,
  batchBytesMax: 4 * MiB,
  nodeStoresMax: 2_048,
  nodeStoreBytesMax: 64 * MiB,
  requestCallsMax: 64,
  repairsRunningMax: 8,
  repairsQueuedMax: 1_000,
  listPageRows: 500,
  listPageBytes: MiB / 4,
  listPagesBytes: 64 * MiB,
  stateTimeoutMs: 1_000,
  watchTimeoutMs: 600_000,
  watchesMax: 65_536,
  pollIntervalMs: 2_000,
  pollsPerRound: 50,
  pollRoundMs: 100,
  followRetryMs: 1_000,
  followPatienceMs: 30_000,
  followRefreshMs: 10_000,
  standingRefreshMs: 500,
  tailRows: 500,
  tailBytes: MiB,
})
