/** Declares when shards are compacted automatically, and how much of the machine a compaction leaves to requests. */
import { converted, defaultValues, integer, option } from '@sectional/core/options'
import type { OptionValues } from '@sectional/core/options'

const bytes = integer({ min: 1, max: 2 ** 46, infinite: true, unit: 'bytes' })
const asPart = (percent: number): number => percent / 100

/** The options that can be set in the configuration. */
export const compactionDeclarations = {
  /** The minimum number of bytes of replaced bodies for an automatic compaction. */
  replacedBytesMin: option('compaction/replaced_bytes', bytes, {
    default: 1024 * 1024,
    effect: 'restart',
    help: 'A shard is compacted automatically when replaced revisions hold at least this many bytes of bodies, and at '
      + 'least replaced_percent of all bodies. infinity: only on request.',
  }),

  /** The minimum fraction of all bodies that replaced bodies must have too, 0 to 1. */
  replacedPartMin: converted(option('compaction/replaced_percent', integer({ min: 0, max: 100, unit: 'percent' }), {
    default: 50,
    effect: 'restart',
    help: 'A shard is compacted automatically only if replaced revisions hold at least this part of all bodies and '
      + 'at least replaced_bytes.',
  }), asPart),

  /** The delay from a write after which both minimums are reached to the compaction. */
  checkIntervalMs: option('compaction/check_interval_ms', integer({ min: 1, max: 86_400_000, unit: 'milliseconds' }), {
    default: 30_000,
    effect: 'restart',
    help: 'Time from a write after which both minimums are reached to the compaction.',
  }),

  /** The fraction of a compaction's time in which it rests and leaves the machine to requests: at least 0, below 1. */
  restPart: converted(option('compaction/rest_percent', integer({ min: 0, max: 99, unit: 'percent' }), {
    default: 50,
    effect: 'restart',
    help: 'Part of the time of a compaction in which it pauses, so that requests are served.',
  }), asPart),
}

export interface CompactionOptions extends OptionValues<typeof compactionDeclarations> {
  /** The number of documents that are read between two pauses. */
  readonly pageDocuments: number
  /** The number of documents that are rewritten in one durable batch. */
  readonly batchDocuments: number
}

export const defaultCompactionOptions: CompactionOptions = Object.freeze({
  ...defaultValues(compactionDeclarations),
  pageDocuments: 512,
  batchDocuments: 64,
})
