import type { Clock } from '@sectional/runtime'

/** Content that nothing names yet is kept for so long after it was written or asked for. */
export const leaseMs = 30 * 60_000

/**
 * Which blobs must not be removed although nothing on disk may name them: in memory only, because after a
 * restart nobody can be about to name what was written before without asking again.
 */
export class BlobLeases {
  readonly #clock: Clock
  /** When leases end, the soonest first: all last equally long, and a renewed one goes to the end. */
  readonly #grants = new Map<string, number>()
  readonly #holds = new Map<string, number>()
  readonly #removing = new Map<string, Promise<void>>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Keeps a blob for a while. Waits while it is being removed: what was not there before may then be written. */
  grant(hash: string): Promise<void> {
    return this.#keep(hash, () => {
      this.#forgetExpired()
      this.#grants.delete(hash)
      this.#grants.set(hash, this.#clock.monotonic() + leaseMs)
    })
  }

  /** Keeps a blob until `release`, which is called as often. Waits like `grant`. */
  hold(hash: string): Promise<void> {
    return this.#keep(hash, () => { this.#holds.set(hash, (this.#holds.get(hash) ?? 0) + 1) })
  }

  release(hash: string): void {
    const others = (this.#holds.get(hash) ?? 0) - 1
    if (others > 0) this.#holds.set(hash, others)
    else this.#holds.delete(hash)
  }

  /** Runs `work` unless the blob is kept; whoever wants it meanwhile waits. Resolves with undefined when it is kept. */
  async remove<T>(hash: string, work: () => Promise<T>): Promise<T | undefined> {
    this.#forgetExpired()
    if (this.#holds.has(hash) || this.#grants.has(hash)) return undefined
    const removal = work()
    const done = removal.then(() => {}, () => {})
    this.#removing.set(hash, done)
    try {
      return await removal
    } finally {
      this.#removing.delete(hash)
    }
  }

  /** In the turn in which no removal runs. */
  async #keep(hash: string, keep: () => void): Promise<void> {
    for (let removing = this.#removing.get(hash); removing !== undefined; removing = this.#removing.get(hash)) {
      await removing
    }
    keep()
  }

  #forgetExpired(): void {
    const now = this.#clock.monotonic()
    for (const [hash, untilMs] of this.#grants) {
      if (untilMs > now) return
      this.#grants.delete(hash)
    }
  }
}
