import type { BodyPace } from './http-listener.ts'

/** Watches the body of one request. Time in which nobody waits for bytes does not count. */
export class BodyWatch {
  readonly #pace: BodyPace
  readonly #onSlow: () => void
  #bytes = 0
  /** Milliseconds of ended waits. */
  #waitedMs = 0
  #waitsSince = 0
  #timer: NodeJS.Timeout | undefined

  /** @param onSlow called once, when the body has come too slowly */
  constructor(pace: BodyPace, onSlow: () => void) {
    this.#pace = pace
    this.#onSlow = onSlow
  }

  /** From now on the server waits for bytes. */
  wait(): void {
    this.#waitsSince = performance.now()
    this.#timer = setTimeout(() => this.#decide(), this.#leftMs())
  }

  arrived(bytes: number): void {
    this.#bytes += bytes
  }

  /** Nobody waits any more. */
  stop(): void {
    if (this.#timer === undefined) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#waitedMs += performance.now() - this.#waitsSince
  }

  #leftMs(): number {
    const { graceMs, bytesPerSecond } = this.#pace
    return graceMs + this.#bytes / bytesPerSecond * 1000 - this.#waitedMs - (performance.now() - this.#waitsSince)
  }

  /** After a turn of the event loop in which sockets are read: one that was late itself must not blame the client. */
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
