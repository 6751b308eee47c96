import type { Clock } from '@sectional/runtime'

/** How long a blob that no body names is kept after it was written or requested. Milliseconds. */
export const leaseMs = 30 * 60_000

/**
 * Records which blobs must not be removed although no body on the disk may name them yet. Leases are in memory only:
 * after a restart, a client that wants to name a blob written earlier must ask for it again.
 */
export class BlobLeases {
  readonly #clock: Clock
  /**
   * Hash -> the end of its lease in monotonic milliseconds. Invariant: ordered by end, because all leases last equally
   * long and a renewed lease moves to the end.
   */
  readonly #grants = new Map<string, number>()
  /** Hash -> the number of calls of `hold` that are not released. */
  readonly #holds = new Map<string, number>()
  /** Hash -> the removal in progress. */
  readonly #removing = new Map<string, Promise<void>>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Grants or renews a lease. Waits while the blob is being removed; the caller may write it again afterwards. */
  grant(hash: string): Promise<void> {
    return this.#keep(hash, () => {
      this.#forgetExpired()
      this.#grants.delete(hash)
      this.#grants.set(hash, this.#clock.monotonic() + leaseMs)
    })
  }

  /** Keeps a blob until `release` was called as often as `hold`. Waits like `grant`. */
  hold(hash: string): Promise<void> {
    return this.#keep(hash, () => { this.#holds.set(hash, (this.#holds.get(hash) ?? 0) + 1) })
  }

  release(hash: string): void {
    const others = (this.#holds.get(hash) ?? 0) - 1
    if (others > 0) this.#holds.set(hash, others)
    else this.#holds.delete(hash)
  }

  /**
   * Runs `work`, which removes the blob, unless the blob is held or leased; resolves with undefined in that case.
   * `grant` and `hold` wait while `work` runs.
   */
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

  /**
   * Calls `keep` synchronously after the last removal of the blob has ended, so that no new removal can begin in
   * between.
   */
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
