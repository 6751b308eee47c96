import type { Clock } from '@sectional/runtime'

/** Content that nothing names yet is kept for so long after it was written or asked for. */
export const leaseMs = 30 * 60_000
/** Expired leases are forgotten at the latest when there are so many. */
const leasesMax = 10_000

interface Lease { holds: number; untilMs: number }

/**
 * Which blobs must not be removed although nothing on disk may name them: in memory only, because after a
 * restart nobody can be about to name what was written before without asking again.
 */
export class BlobLeases {
  readonly #clock: Clock
  readonly #leases = new Map<string, Lease>()
  readonly #removing = new Map<string, Promise<void>>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Keeps a blob for a while. Waits while it is being removed: what was not there before may then be written. */
  async grant(hash: string): Promise<void> {
    const lease = await this.#lease(hash)
    lease.untilMs = this.#clock.monotonic() + leaseMs
  }

  /** Keeps a blob until `release`. */
  async hold(hash: string): Promise<void> {
    const lease = await this.#lease(hash)
    lease.holds++
  }

  release(hash: string): void {
    const lease = this.#leases.get(hash)
    if (lease !== undefined) lease.holds--
  }

  /** Runs `work` unless the blob is kept; whoever wants it meanwhile waits. Resolves with undefined when it is kept. */
  async remove<T>(hash: string, work: () => Promise<T>): Promise<T | undefined> {
    if (this.#isKept(hash)) return undefined
    const removal = work()
    const done = removal.then(() => {}, () => {})
    this.#removing.set(hash, done)
    try {
      return await removal
    } finally {
      this.#removing.delete(hash)
    }
  }

  async #lease(hash: string): Promise<Lease> {
    for (let removing = this.#removing.get(hash); removing !== undefined; removing = this.#removing.get(hash)) await removing
    let lease = this.#leases.get(hash)
    if (lease === undefined) {
      if (this.#leases.size >= leasesMax) this.#forgetExpired()
      this.#leases.set(hash, lease = { holds: 0, untilMs: 0 })
    }
    return lease
  }

  #isKept(hash: string): boolean {
    const lease = this.#leases.get(hash)
    if (lease === undefined) return false
    if (lease.holds > 0 || lease.untilMs > this.#clock.monotonic()) return true
    this.#leases.delete(hash)
    return false
  }

  #forgetExpired(): void {
    for (const hash of [...this.#leases.keys()]) this.#isKept(hash)
  }
}
