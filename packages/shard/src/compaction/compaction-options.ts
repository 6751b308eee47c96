/** When shards are compacted by themselves, and how gently. */
export interface CompactionOptions {
  /** Bytes of replaced bodies below which a shard is left alone ... */
  readonly replacedBytesMin: number
  /** ... and their part of all bodies. */
  readonly replacedPartMin: number
  /** Shards that grew beyond both are looked for so often, in milliseconds. */
  readonly checkIntervalMs: number
  /** Documents looked at between two pauses. */
  readonly pageDocuments: number
  /** Documents rewritten in one durable batch. */
  readonly batchDocuments: number
  /** Of a compaction's time, the part in which it rests and requests have the machine: 0 to below 1. */
  readonly restPart: number
}

export const defaultCompactionOptions: CompactionOptions = Object.freeze({
  replacedBytesMin: 1024 * 1024,
  replacedPartMin: 0.5,
  checkIntervalMs: 30_000,
  pageDocuments: 512,
  batchDocuments: 64,
  restPart: 0.5,
})
