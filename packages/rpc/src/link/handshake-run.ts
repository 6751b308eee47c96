import type { Clock, Connection, Timer } from '@sectional/runtime'
import { encodeRefused, maxHandshakeFrameBytes } from './handshake.ts'
import type { Established, HandshakeMachine, HandshakeRefusal, HandshakeStep, LinkIdentity } from './handshake.ts'

export interface HandshakeRunOptions {
  readonly connection: Connection
  readonly machine: HandshakeMachine
  /** The first frame of the dialing side; absent on the listening side. */
  readonly first?: Uint8Array
  readonly clock: Clock
  readonly timeoutMs: number
  /**
   * Called when the peer has proven itself, before this side continues. Resolves with a reason to refuse the peer, or
   * null. It returns null directly when there is nothing to wait for. The timeout of the handshake covers the wait.
   */
  readonly admit: (peer: LinkIdentity) => Promise<HandshakeRefusal | null> | null
  /** Takes over the connection. It returns the receiver of the frames that follow. */
  readonly onEstablished: (result: Established) => LinkEnd
  /** Called once when the handshake failed and the connection is closed. `peer` is the claimed identity, if known. */
  readonly onFailed: (refusal: HandshakeRefusal, peer: LinkIdentity | undefined) => void
  /** Called once when the connection has closed, whether the handshake succeeded or failed. */
  readonly onConnectionClosed: () => void
}

/** Receives the frames that follow the handshake, and the end of the connection. */
export interface LinkEnd {
  receive(frame: Uint8Array): void
  connectionClosed(reason: string): void
}

/**
 * Bytes that a dialing peer may send before it has proven itself. They are in memory at the listening side, even if the
 * frame does not end.
 */
const unprovenBytesMax = 32 * maxHandshakeFrameBytes

/** Runs one handshake machine on one connection, with a timeout. */
export class HandshakeRun {
  readonly #options: HandshakeRunOptions
  readonly #timer: Timer
  #link: LinkEnd | undefined
  #ended = false
  /** True while a step waits for `admit`. */
  #held = false
  /** Whether the listening side may already use the link, on which a frame of the handshake breaks the protocol. */
  #isProofSent = false

  constructor(options: HandshakeRunOptions) {
    this.#options = options
    const { connection, first, clock, timeoutMs } = options
    // A listening side that has accepted the proof may already have sent large frames.
    if (first === undefined) connection.limitReceived(unprovenBytesMax)
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

  /** Refuses the peer when the handshake is still under way. */
  cancel(refusal: HandshakeRefusal): void {
    if (this.#ended) return
    this.#refuse(refusal, undefined)
  }

  #receive(frame: Uint8Array): void {
    if (this.#link) return this.#link.receive(frame)
    if (this.#ended) return
    if (this.#held) return this.cancel({ kind: 'garbage', reason: 'an unexpected frame' })
    const step: HandshakeStep = frame.length > maxHandshakeFrameBytes
      ? { kind: 'refused', refusal: { kind: 'garbage', reason: `a handshake frame of ${frame.length} bytes` } }
      : this.#options.machine.receive(frame)
    const peer = provenBy(step)
    const admission = peer && this.#options.admit(peer)
    if (admission) void this.#hold(step, peer, admission)
    else this.#act(step)
  }

  async #hold(step: HandshakeStep, peer: LinkIdentity, admission: Promise<HandshakeRefusal | null>): Promise<void> {
    this.#held = true
    const refusal = await admission
    this.#held = false
    if (this.#ended) return
    if (refusal) this.#refuse(refusal, peer)
    else this.#act(step)
  }

  #act(step: HandshakeStep): void {
    const { connection, first } = this.#options
    if (step.send) connection.send(step.send)
    this.#isProofSent ||= step.kind === 'continue' && first !== undefined
    if (step.kind === 'refused') this.#fail(step.refusal, step.peer)
    if (step.kind === 'established') {
      this.#ended = true
      this.#timer.cancel()
      connection.limitReceived(null)
      this.#link = this.#options.onEstablished(step.result)
    }
  }

  #refuse(refusal: HandshakeRefusal, peer: LinkIdentity | undefined): void {
    if (!this.#isProofSent) this.#options.connection.send(encodeRefused(refusal))
    this.#fail(refusal, peer)
  }

  #fail(refusal: HandshakeRefusal, peer: LinkIdentity | undefined): void {
    if (this.#ended) return
    this.#ended = true
    this.#timer.cancel()
    this.#options.connection.close(`handshake: ${refusal.reason}`)
    this.#options.onFailed(refusal, peer)
  }
}

/**
 * Returns the peer when it has proven itself with this step. The listening side has the peer's proof when the link is
 * established, the dialing side before it sends its own proof.
 */
function provenBy(step: HandshakeStep): LinkIdentity | undefined {
  if (step.kind === 'continue') return step.proven
  return step.kind === 'established' && step.send ? step.result.peer : undefined
}
