import type { Clock, Connection, Timer } from '@sectional/runtime'
import { encodeRefused, maxHandshakeFrameBytes } from './handshake.ts'
import type { Established, HandshakeMachine, HandshakeRefusal, HandshakeStep, LinkIdentity } from './handshake.ts'

export interface HandshakeRunOptions {
  readonly connection: Connection
  readonly machine: HandshakeMachine
  /** The dialing side's first frame. */
  readonly first?: Uint8Array
  readonly clock: Clock
  readonly timeoutMs: number
  /** Takes the connection over, before its next frame. */
  readonly onEstablished: (result: Established) => LinkEnd
  /** Called once when no link opened; the connection is closed. `peer` is what it said of itself, proven or not. */
  readonly onFailed: (refusal: HandshakeRefusal, peer: LinkIdentity | undefined) => void
  /** Called once, when the connection is gone, whatever came of it. */
  readonly onConnectionClosed: () => void
}

/** Whoever receives what follows the handshake. */
export interface LinkEnd {
  receive(frame: Uint8Array): void
  connectionClosed(reason: string): void
}

/** Drives one handshake machine over one connection, in bounded time. */
export class HandshakeRun {
  readonly #options: HandshakeRunOptions
  readonly #timer: Timer
  #link: LinkEnd | undefined
  #ended = false

  constructor(options: HandshakeRunOptions) {
    this.#options = options
    const { connection, first, clock, timeoutMs } = options
    connection.onFrame = frame => { this.#receive(frame) }
    connection.onClose = reason => {
      if (this.#link) this.#link.connectionClosed(reason)
      else this.#fail({ kind: 'by-peer', reason: `the connection closed during the handshake: ${reason}` }, undefined)
      options.onConnectionClosed()
    }
    this.#timer = clock.setTimer(timeoutMs, () => {
      this.cancel({ kind: 'timeout', reason: `the handshake was not complete after ${timeoutMs} ms` })
    })
    if (first) connection.send(first)
  }

  /** Ends a handshake that is under way. */
  cancel(refusal: HandshakeRefusal): void {
    if (this.#ended) return
    this.#options.connection.send(encodeRefused(refusal.reason))
    this.#fail(refusal, undefined)
  }

  #receive(frame: Uint8Array): void {
    if (this.#link) return this.#link.receive(frame)
    if (this.#ended) return
    const step: HandshakeStep = frame.length > maxHandshakeFrameBytes
      ? { kind: 'refused', refusal: { kind: 'garbage', reason: `a handshake frame of ${frame.length} bytes` } }
      : this.#options.machine.receive(frame)
    if (step.send) this.#options.connection.send(step.send)
    if (step.kind === 'refused') this.#fail(step.refusal, step.peer)
    if (step.kind === 'established') {
      this.#ended = true
      this.#timer.cancel()
      this.#link = this.#options.onEstablished(step.result)
    }
  }

  #fail(refusal: HandshakeRefusal, peer: LinkIdentity | undefined): void {
    if (this.#ended) return
    this.#ended = true
    this.#timer.cancel()
    this.#options.connection.close(`handshake: ${refusal.reason}`)
    this.#options.onFailed(refusal, peer)
  }
}
