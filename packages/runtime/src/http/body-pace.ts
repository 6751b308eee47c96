import type { BodyPace } from './http-listener.ts'

/** Checks that the body of one request arrives fast enough. Only time in which the server waits for bytes counts. */
export class BodyWatch {
  readonly #pace: BodyPace
  readonly #onSlow: () => void
  #bytes = 0
  /** The total of the waits that have ended. Milliseconds. */
  #waitedMs = 0
  #waitsSince = 0
  #timer: NodeJS.Timeout | undefined

  /** @param onSlow called once when the body has arrived too slowly */
  constructor(pace: BodyPace, onSlow: () => void) {
    this.#pace = pace
    this.#onSlow = onSlow
    pace.signal?.addEventListener('abort', () => { if (this.#timer !== undefined) this.#decide() }, { once: true })
  }

  /** Call this when the server begins to wait for bytes. */
  wait(): void {
    this.#waitsSince = performance.now()
    this.#timer = setTimeout(() => this.#decide(), this.#leftMs())
  }

  arrived(bytes: number): void {
    this.#bytes += bytes
  }

  /** Call this when the server no longer waits for bytes. */
  stop(): void {
    if (this.#timer === undefined) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#waitedMs += performance.now() - this.#waitsSince
  }

  #leftMs(): number {
    const { graceMs, bytesPerSecond, signal } = this.#pace
    if (signal?.aborted) return 0
    return graceMs + this.#bytes / bytesPerSecond * 1000 - this.#waitedMs - (performance.now() - this.#waitsSince)
  }

  /**
   * Decides after another turn of the event loop in which sockets are read, so that the client is not blamed for a
   * delay of the event loop itself.
   */
  #decide(): void {
    const timer = this.#timer
    setImmediate(() => {
      if (this.#timer !== timer) return
      const leftMs = this.#leftMs()
      if (leftMs > 0) {
        this.#timer = setTimeout(() => this.#decide(), leftMs)
        return
      }
      this.stop()
      this.#onSlow()
    })
  }
}
