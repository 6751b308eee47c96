import type { Clock, Connection } from '@sectional/runtime'
import type { FrameEncoder, OutgoingMessage } from './frame-codec.ts'

/** What one connection has sent: added to the node's metrics once a flush. */
export interface OutboxMeter {
  sent(frames: number, messages: number, bytes: number): void
}

/**
 * Collects the messages of one turn of the event loop and sends them as few frames. It has no bound of its
 * own: those who begin work ask `queuedBytes` first.
 */
export class Outbox {
  readonly #connection: Connection
  readonly #encoder: FrameEncoder
  readonly #clock: Clock
  readonly #meter: OutboxMeter
  #messages: OutgoingMessage[] = []
  #bytes = 0
  #scheduled = false
  #closed = false
  /** Whether something was sent since the last heartbeat looked. */
  active = false

  constructor(connection: Connection, encoder: FrameEncoder, clock: Clock, meter: OutboxMeter) {
    this.#connection = connection
    this.#encoder = encoder
    this.#clock = clock
    this.#meter = meter
  }

  /** Bytes that wait here and in the connection. */
  get queuedBytes(): number { return this.#bytes + this.#connection.bufferedBytes }

  add(message: OutgoingMessage): void {
    if (this.#closed) return
    this.#messages.push(message)
    this.#bytes += message.bytes
    this.active = true
    if (this.#scheduled) return
    this.#scheduled = true
    this.#clock.setImmediate(() => { this.#scheduled = false; this.flush() })
  }

  flush(): void {
    if (this.#closed || this.#messages.length === 0) return
    const messages = this.#messages
    this.#messages = []
    this.#bytes = 0
    let frames = 0
    let bytes = 0
    this.#encoder.encode(messages, frame => {
      frames++
      bytes += frame.length
      this.#connection.send(frame)
    })
    this.#meter.sent(frames, messages.length, bytes)
  }

  /** Forgets what was not sent. */
  close(): void {
    this.#closed = true
    this.#messages = []
    this.#bytes = 0
  }
}
