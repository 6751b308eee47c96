import type { HostedShard } from './hosted-shards.ts'

/**
 * `push`: from this node's replica to the peer's. `pull`: from the peer's replica to this node's. `compare`: comparison
 * of digests, copying both ways. `check`: comparison of digests only if the replicas may differ although each has seen
 * all changes of the other.
 */
export type SyncKind = 'push' | 'pull' | 'compare' | 'check'

export interface SyncJob {
  readonly kind: SyncKind
  readonly shard: HostedShard
  readonly peer: string
  /** Called before the pass copies anything, when the target lags. */
  readonly onBehind?: () => void
}

interface Entry {
  readonly key: string
  readonly job: SyncJob
  readonly done: Promise<boolean>
  readonly settle: (succeeded: boolean) => void
}

/**
 * The waiting and running passes. For each pair of replicas, at most one pass of a kind runs at a time; the total is
 * limited too.
 */
export class SyncQueue {
  readonly #concurrency: number
  readonly #run: (job: SyncJob) => Promise<boolean>
  readonly #urgent = new Map<string, Entry>()
  readonly #ordinary = new Map<string, Entry>()
  readonly #running = new Map<string, Entry>()
  #stopped = false

  /** @param run runs a pass and resolves to true when it succeeded; must not reject */
  constructor(concurrency: number, run: (job: SyncJob) => Promise<boolean>) {
    this.#concurrency = concurrency
    this.#run = run
  }

  /** Number of passes that wait or run. */
  get size(): number {
    return this.#urgent.size + this.#ordinary.size + this.#running.size
  }

  /** Resolves to true when a pass that began after this call succeeded. Urgent passes start before others. */
  add(job: SyncJob, urgent = false): Promise<boolean> {
    if (this.#stopped) return Promise.resolve(false)
    const key = `${job.kind} ${job.shard.key} ${job.peer}`
    const waiting = this.#urgent.get(key) ?? this.#ordinary.get(key)
    if (waiting !== undefined) {
      if (urgent && this.#ordinary.delete(key)) this.#urgent.set(key, waiting)
      return waiting.done
    }
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const queue = urgent ? this.#urgent : this.#ordinary
    queue.set(key, { key, job, done: promise, settle: resolve })
    this.#start()
    return promise
  }

  /** Drops the waiting passes. Resolves when none is running. The caller must abort the running passes first. */
  async stop(): Promise<void> {
    this.#stopped = true
    for (const queue of [this.#urgent, this.#ordinary]) {
      for (const entry of queue.values()) entry.settle(false)
      queue.clear()
    }
    await Promise.all([...this.#running.values()].map(entry => entry.done))
  }

  #start(): void {
    for (const queue of [this.#urgent, this.#ordinary]) {
      for (const [key, entry] of queue) {
        if (this.#running.size >= this.#concurrency) return
        if (this.#running.has(key)) continue
        queue.delete(key)
        this.#begin(entry)
      }
    }
  }

  #begin(entry: Entry): void {
    this.#running.set(entry.key, entry)
    void this.#run(entry.job).then(succeeded => {
      this.#running.delete(entry.key)
      entry.settle(succeeded)
      this.#start()
    })
  }
}
