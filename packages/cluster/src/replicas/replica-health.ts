import type { Clock } from '@sectional/runtime'

/**
 * Records nodes that let a call wait too long while their link was open (stopped processes, hung disks). Such suspects
 * are asked last until they answer or a time has passed. Only the order of the questions depends on this.
 */
export class ReplicaHealth {
  readonly #clock: Clock
  readonly #suspectMs: number
  readonly #suspectUntil = new Map<string, number>()

  constructor(clock: Clock, suspectMs: number) {
    this.#clock = clock
    this.#suspectMs = suspectMs
  }

  silent(node: string): void {
    this.#suspectUntil.set(node, this.#clock.monotonic() + this.#suspectMs)
  }

  answered(node: string): void {
    if (this.#suspectUntil.size > 0) this.#suspectUntil.delete(node)
  }

  /** Returns true when the node was silent at some moment of the last `ms` milliseconds and has not answered since. */
  wasSilentWithin(node: string, ms: number): boolean {
    const until = this.#suspectUntil.get(node)
    return until !== undefined && this.#clock.monotonic() - (until - this.#suspectMs) <= ms
  }

  isSuspect(node: string): boolean {
    if (this.#suspectUntil.size === 0) return false
    const until = this.#suspectUntil.get(node)
    if (until === undefined) return false
    if (this.#clock.monotonic() < until) return true
    this.#suspectUntil.delete(node)
    return false
  }
}
