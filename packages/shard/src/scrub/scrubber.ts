import type { ShardId } from '@sectional/core'
import { ReplicaError } from '@sectional/core'
import { sleep, StorageError } from '@sectional/runtime'
import type { Clock, Log, Timer } from '@sectional/runtime'
import { DamagedRecordError } from '../records/damaged-record.ts'
import type { ShardRecords } from '../reading/shard-records.ts'
import { scrubShard } from './shard-scrub.ts'

/** Reading of everything on the disk, so that damage is found while other replicas are sound. */
export interface ScrubOptions {
  /** Milliseconds from the start, and from the end of one scrub, to the next one. At most 24 days. */
  readonly pauseMs: number
  /** The part of a scrub's time in which it rests and requests have the machine: 0 to below 1. */
  readonly restPart: number
}

export const defaultScrubOptions: ScrubOptions = Object.freeze({ pauseMs: 7 * 24 * 3_600_000, restPart: 0.9 })

export interface ScrubberParts {
  readonly clock: Clock
  readonly log: Log
  readonly options: ScrubOptions
  readonly shards: () => readonly ShardId[]
  /** Undefined: it is hosted no more. */
  readonly records: (shard: ShardId) => ShardRecords | undefined
  readonly onDamage: (shard: ShardId, error: DamagedRecordError) => void
  /** Reads the files of the store, whole or only what is needed to find a key in them; tells of damage itself. */
  readonly checkFiles: (contents: boolean, rest: () => Promise<void>) => Promise<void>
  /** Reads each blob, and tells of damaged ones itself. */
  readonly readBlobs: (rest: () => Promise<void>) => Promise<void>
}

/** One shard of the node after the other, then attachments, then a long rest. */
export class Scrubber {
  readonly #parts: ScrubberParts
  readonly #abort = new AbortController()
  #timer: Timer | undefined
  #running: Promise<void> | undefined

  constructor(parts: ScrubberParts) {
    this.#parts = parts
  }

  /** Checks at once what is needed to find a key in the store; everything after `pauseMs`, again and again. */
  start(): void {
    this.#working(this.#checkFiles(false, this.#resting()))
  }

  #working(work: Promise<void>): void {
    this.#running = work.finally(() => {
      this.#running = undefined
      if (this.#abort.signal.aborted) return
      this.#timer = this.#parts.clock.setTimer(this.#parts.options.pauseMs, () => this.#working(this.run()))
    })
  }

  /** What rests after a piece of work as long as it took and more. */
  #resting(): () => Promise<void> {
    const { clock, options } = this.#parts
    let workingSince = clock.monotonic()
    return async () => {
      await sleep(
        clock, (clock.monotonic() - workingSince) * options.restPart / (1 - options.restPart), this.#abort.signal,
      )
      if (this.#abort.signal.aborted) throw new ReplicaError('closed', 'the node is shutting down')
      workingSince = clock.monotonic()
    }
  }

  async #checkFiles(contents: boolean, rest: () => Promise<void>): Promise<void> {
    try {
      await this.#parts.checkFiles(contents, rest)
    } catch (error) {
      if (!this.#abort.signal.aborted) {
        this.#parts.log.warn(
          { error: String(error) }, 'the files of the document store could not be checked; this is tried again',
        )
      }
    }
  }

  async run(): Promise<void> {
    const { log, shards, records, onDamage, readBlobs } = this.#parts
    const rest = this.#resting()
    await this.#checkFiles(true, rest)
    if (this.#abort.signal.aborted) return
    for (const shard of shards()) {
      const found = records(shard)
      if (found === undefined) continue
      try {
        await scrubShard(found, rest)
      } catch (error) {
        if (this.#abort.signal.aborted) return
        // What was dropped meanwhile is damaged for no one.
        if (error instanceof DamagedRecordError && records(shard)?.keys.prefix === found.keys.prefix) {
          onDamage(shard, error)
        } else if (error instanceof StorageError) {
          log.warn({ error: error.message }, 'a shard could not be scrubbed; this is tried again')
        } else if (!(error instanceof DamagedRecordError)) throw error
      }
    }
    try {
      await readBlobs(rest)
    } catch (error) {
      if (this.#abort.signal.aborted) return
      if (!(error instanceof ReplicaError)) throw error
      log.warn({ error: error.message }, 'attachment content could not be scrubbed; this is tried again')
    }
  }

  async stop(): Promise<void> {
    this.#abort.abort()
    this.#timer?.cancel()
    await this.#running
  }
}
