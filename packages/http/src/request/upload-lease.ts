import type { Clock, Timer } from '@sectional/runtime'

/** Milliseconds between renewals. A lease of content that no document refers to lasts at least twice as long. */
const renewMs = 5 * 60_000

/** Keeps uploaded content from being removed until the request ends, however slowly the rest of its body arrives. */
export class UploadLease {
  readonly #clock: Clock
  readonly #keep: (id: string, hashes: readonly string[]) => Promise<void>
  readonly #hashes = new Map<string, string[]>()
  #timer: Timer | undefined

  /** @param keep makes replicas keep the content for at least ten more minutes; never rejects */
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
