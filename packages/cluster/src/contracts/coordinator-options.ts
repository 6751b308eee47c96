/** Bounds of the coordinator. Milliseconds, counts and bytes. */
export interface CoordinatorOptions {
  /** One whole call on a replica where nothing shorter applies. */
  readonly requestTimeoutMs: number
  /** One attempt to read from a replica; afterwards the read ends with what others answered. */
  readonly readTimeoutMs: number
  /** A reader that is silent for so long is doubled by the next one. */
  readonly readHedgeMs: number
  /** One replica's time to decide an edit before the next one is asked. */
  readonly decisionTimeoutMs: number
  /** Looking at other replicas before a stand-in decides, and before a conflict is answered; waiting for the last replicas of a purge. */
  readonly reviewTimeoutMs: number
  /**
   * A remote replica that owes a decision or a store for so long is probed; when the probe is not answered within the same
   * time, the replica is taken for silent: another one decides, and the store is not waited for.
   */
  readonly silenceProbeMs: number
  /** One replica's time to make decided revisions durable. */
  readonly storeTimeoutMs: number
  /** Wait for one page of a scan before another replica takes over. */
  readonly scanPageTimeoutMs: number
  /** A node that let a call time out is asked last for so long. */
  readonly suspectMs: number
  /** Edits or revisions in one call on a replica. */
  readonly batchDocumentsMax: number
  /** Body bytes in one call on a replica; a single larger document travels alone. */
  readonly batchBytesMax: number
  /** Stores under way to one node, beyond which it is left to anti-entropy. */
  readonly nodeStoresMax: number
  readonly nodeStoreBytesMax: number
  /** Calls that one request keeps under way at a time. */
  readonly requestCallsMax: number
  /** Documents being repaired at a time, and waiting to be. */
  readonly repairsRunningMax: number
  readonly repairsQueuedMax: number
  /** Rows, and bytes of bodies, of one page that a list hands on. */
  readonly listPageRows: number
  readonly listPageBytes: number
  /** Waiting for all replicas to say where they stand, for an ETag; who is later is left out. */
  readonly stateTimeoutMs: number
  /** One call that waits for a shard's next change. */
  readonly watchTimeoutMs: number
  /** Replicas that the changes feeds of this node wait on; a feed that needs one more is refused with 503. */
  readonly watchesMax: number
  /** A replica on which no call may wait, since its link has no room for one, is asked again after this at the soonest ... */
  readonly pollIntervalMs: number
  /** ... and all of them together are asked so many questions in so long. */
  readonly pollsPerRound: number
  readonly pollRoundMs: number
  /** A changes feed that lost every replica of a shard looks for one again after this, and fails after that. */
  readonly followRetryMs: number
  readonly followPatienceMs: number
  /** A feed that goes on asks this seldom what its replica has of others. */
  readonly followRefreshMs: number
  /** What a replica said of others is asked anew after so long when a place is told to a client: soon after the last write all of them say the same. */
  readonly standingRefreshMs: number
  /** Rows, and bytes of bodies, that feeds which were woken together read once for all. */
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
  suspectMs: 5_000,
  batchDocumentsMax: 500,
  batchBytesMax: 4 * MiB,
  nodeStoresMax: 2_048,
  nodeStoreBytesMax: 64 * MiB,
  requestCallsMax: 64,
  repairsRunningMax: 8,
  repairsQueuedMax: 1_000,
  listPageRows: 500,
  listPageBytes: MiB,
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
