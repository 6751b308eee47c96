import type { Clock, Timer } from '@sectional/runtime'

/** Replicas keep content that nothing names for ten minutes at least. */
const renewMs = 5 * 60_000

/** Keeps what a request has uploaded until it ends, however long the rest of it takes to come. */
export class UploadLease {
  readonly #clock: Clock
  readonly #keep: (id: string, hashes: readonly string[]) => Promise<void>
  readonly #hashes = new Map<string, string[]>()
  #timer: Timer | undefined

  /** @param keep keeps content for a document for at least ten minutes more; never rejects */
  constructor(clock: Clock, keep: (id: string, hashes: readonly string[]) => Promise<void>) {
    this.#clock = clock
    this.#keep = keep
  }

  add(id: string, hash: string): void {
    const hashes = this.#hashes.get(id)
    if (hashes === undefined) this.#hashes.set(id, [hash])
    else hashes.push(hash)
    if (this.#timer === undefined) this.#arm()
  }

  end(): void {
    this.#timer?.cancel()
  }

  #arm(): void {
    this.#timer = this.#clock.setTimer(renewMs, () => {
      this.#arm()
      for (const [id, hashes] of this.#hashes) void this.#keep(id, hashes)
    })
  }
}
