import type { Clock, Connection } from '@sectional/runtime'
import type { FrameEncoder, OutgoingMessage } from './frame-codec.ts'

/** Counts what the connections have sent. It is called once for each flush. */
export interface OutboxMeter {
  sent(frames: number, messages: number, bytes: number): void
}

/**
 * Collects the messages of one turn of the event loop and sends them in as few frames as possible. It does not limit
 * its size itself: callers check `queuedBytes` before they begin new work.
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
  /** Whether a message was added since the heartbeat timer last reset this field. */
  active = false

  constructor(connection: Connection, encoder: FrameEncoder, clock: Clock, meter: OutboxMeter) {
    this.#connection = connection
    this.#encoder = encoder
    this.#clock = clock
    this.#meter = meter
  }

  /** Number of bytes that wait here or in the connection to be sent. */
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

  /** Drops the messages that were not sent. */
  close(): void {
    this.#closed = true
    this.#messages = []
    this.#bytes = 0
  }
}
