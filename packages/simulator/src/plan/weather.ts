/**
 * Milliseconds for which a fault may still have effects after it has ended: links are dialled again, replicas catch up.
 */
const settleMs = 30_000

/** Records when the cluster was last disturbed by a fault. */
export class Weather {
  readonly #nowMs: () => number
  #active = 0
  #disturbedMs = -Infinity
  /** Names of all faults so far. */
  readonly faults: string[] = []

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  /** Call this when a fault begins. */
  worsen(name: string): void {
    this.faults.push(name)
    this.#active++
    this.#disturbedMs = this.#nowMs()
  }

  /** Call this when a fault ends. */
  improve(): void {
    this.#active--
    this.#disturbedMs = this.#nowMs()
  }

  /** Returns whether no fault was active, and none had recently ended, at any time since `startMs`. */
  calmSince(startMs: number): boolean {
    return this.#active === 0 && this.#disturbedMs + settleMs < startMs
  }

  /** Returns for how many milliseconds no fault had been active at that time; 0 when there is a fault now. */
  calmMsAt(timeMs: number): number {
    return this.#active === 0 ? Math.max(0, timeMs - this.#disturbedMs) : 0
  }

  /** Whether no fault has occurred so far. */
  get everCalm(): boolean {
    return this.#disturbedMs === -Infinity
  }
}
