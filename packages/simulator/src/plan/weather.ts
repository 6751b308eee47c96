/** How long the effects of a fault may go on after it has ended: links are dialled anew, replicas catch up. */
const settleMs = 30_000

/** Knows when the cluster was last disturbed. */
export class Weather {
  readonly #nowMs: () => number
  #active = 0
  #disturbedMs = -Infinity
  /** Names of all so far. */
  readonly faults: string[] = []

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  /** A fault has begun. */
  worsen(name: string): void {
    this.faults.push(name)
    this.#active++
    this.#disturbedMs = this.#nowMs()
  }

  /** It has ended. */
  improve(): void {
    this.#active--
    this.#disturbedMs = this.#nowMs()
  }

  /** No fault was under way, or had lately been, at any time since then. */
  calmSince(startMs: number): boolean {
    return this.#active === 0 && this.#disturbedMs + settleMs < startMs
  }

  /** No fault so far. */
  get everCalm(): boolean {
    return this.#disturbedMs === -Infinity
  }
}
