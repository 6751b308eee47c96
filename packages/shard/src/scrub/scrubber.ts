import type { ShardId } from '@sectional/core'
import { ReplicaError } from '@sectional/core'
import { sleep } from '@sectional/runtime'
import type { Clock, Log, Timer } from '@sectional/runtime'
import { DamagedRecordError } from '../records/damaged-record.ts'
import type { ShardRecords } from '../reading/shard-records.ts'
import { scrubShard } from './shard-scrub.ts'

/**
 * Options of scrubbing. A scrub reads everything on the disk, so that damage is found while other replicas are still
 * sound.
 */
export interface ScrubOptions {
  /**
   * Milliseconds from the start of the node to the first scrub, and from the end of one scrub to the next one. At most
   * 24 days.
   */
  readonly pauseMs: number
  /** The fraction of a scrub's time in which it rests and leaves the machine to requests: at least 0, below 1. */
  readonly restPart: number
}

export const defaultScrubOptions: ScrubOptions = Object.freeze({ pauseMs: 7 * 24 * 3_600_000, restPart: 0.9 })

export interface ScrubberParts {
  readonly clock: Clock
  readonly log: Log
  readonly options: ScrubOptions
  readonly shards: () => readonly ShardId[]
  /** Returns undefined when the shard is no longer hosted. */
  readonly records: (shard: ShardId) => ShardRecords | undefined
  readonly onDamage: (shard: ShardId, error: DamagedRecordError) => void
  /**
   * Reads the files of the store: completely when `contents` is true, otherwise only the parts that are needed to find
   * a key. Reports damage itself.
   */
  readonly checkFiles: (contents: boolean, rest: () => Promise<void>) => Promise<void>
  /** Reads every blob and reports damaged ones itself. */
  readonly readBlobs: (rest: () => Promise<void>) => Promise<void>
}

/** Reads one shard of the node after the other, then the attachments, and then pauses for a long time. */
export class Scrubber {
  readonly #parts: ScrubberParts
  readonly #abort = new AbortController()
  #timer: Timer | undefined
  #running: Promise<void> | undefined

  constructor(parts: ScrubberParts) {
    this.#parts = parts
  }

  /**
   * Checks at once the parts of the files that are needed to find a key. Afterwards checks everything each `pauseMs`.
   */
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

  /** Returns a function that rests after a piece of work, in proportion to the time that the work took (`restPart`). */
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

  /** Never rejects; logs what could not be scrubbed. */
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
        // Ignore damage in a shard that was dropped while it was being read.
        if (error instanceof DamagedRecordError && records(shard)?.keys.prefix === found.keys.prefix) {
          onDamage(shard, error)
        } else if (!(error instanceof DamagedRecordError)) {
          log.warn({ error: String(error) }, 'a shard could not be scrubbed; this is tried again')
        }
      }
    }
    try {
      await readBlobs(rest)
    } catch (error) {
      if (this.#abort.signal.aborted) return
      log.warn({ error: String(error) }, 'attachment content could not be scrubbed; this is tried again')
    }
  }

  async stop(): Promise<void> {
    this.#abort.abort()
    this.#timer?.cancel()
    await this.#running
  }
}
