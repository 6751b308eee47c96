/**
 * Tracks work that outlives the request that began it, so that a stop can wait for it. Callers must bound the work that
 * they begin.
 */
export class BackgroundWork {
  readonly #running = new Set<Promise<unknown>>()

  /** Tracks a promise. `work` must handle its own failures. */
  track(work: Promise<unknown>): void {
    this.#running.add(work)
    const forget = (): void => { this.#running.delete(work) }
    work.then(forget, forget)
  }

  get running(): number {
    return this.#running.size
  }

  /** Resolves when no work is left, including work that began meanwhile. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled([...this.#running])
  }
}

/** Limits the concurrent calls and their bytes per node. */
export class NodeWindow {
  readonly #callsMax: number
  readonly #bytesMax: number
  readonly #open = new Map<string, { calls: number; bytes: number }>()

  constructor(callsMax: number, bytesMax: number) {
    this.#callsMax = callsMax
    this.#bytesMax = bytesMax
  }

  /** Returns false when the node is at its limit. A call always enters when no other call to the node is running. */
  enter(node: string, bytes: number): boolean {
    const open = this.#open.get(node)
    if (open === undefined) {
      this.#open.set(node, { calls: 1, bytes })
      return true
    }
    if (open.calls >= this.#callsMax || open.bytes + bytes > this.#bytesMax) return false
    open.calls++
    open.bytes += bytes
    return true
  }

  leave(node: string, bytes: number): void {
    const open = this.#open.get(node)!
    if (open.calls === 1) this.#open.delete(node)
    else {
      open.calls--
      open.bytes -= bytes
    }
  }
}
