import type { Random } from '@sectional/runtime'

/** Computes pauses that double from `minMs` to `maxMs`. Each is shortened by a random part of at most half. */
export class Backoff {
  readonly #minMs: number
  readonly #maxMs: number
  readonly #random: Random
  #nextMs: number

  constructor(minMs: number, maxMs: number, random: Random) {
    this.#minMs = minMs
    this.#maxMs = maxMs
    this.#random = random
    this.#nextMs = minMs
  }

  next(): number {
    const ms = this.#nextMs
    this.#nextMs = Math.min(ms * 2, this.#maxMs)
    return ms * (1 - this.#random.fraction() / 2)
  }

  reset(): void { this.#nextMs = this.#minMs }
}
