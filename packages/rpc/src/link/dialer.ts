import type { Clock, Connection, Network, NetworkAddress, Random, Timer } from '@sectional/runtime'
import type { RpcLimits } from './limits.ts'
import { Backoff } from './backoff.ts'

export interface ConnectionEnd {
  /** Milliseconds for which the link was open; 0: the handshake failed. */
  readonly lifetimeMs: number
  /** True when the handshake failed for a reason that lasts until an operator removes it. */
  readonly refused: boolean
}

export interface DialerOptions {
  readonly address: string
  readonly network: Network
  readonly clock: Clock
  readonly random: Random
  readonly limits: RpcLimits
  /** Returns false when a link to the node at this address is open already. */
  readonly wanted: () => boolean
  /** Runs the handshake on the new connection. Calls `done` once, when the handshake failed or the link has closed. */
  readonly onConnection: (connection: Connection, done: (end: ConnectionEnd) => void) => void
  readonly onFailed: (error: unknown, nextAttemptMs: number) => void
}

/** Keeps a connection to one address open, as long as it is wanted. */
export class Dialer {
  readonly #options: DialerOptions
  /**
   * Used while the node is unreachable or its links do not last. The pauses stay short, so that the node is found soon
   * after it is back, also when its disk is empty.
   */
  readonly #absence: Backoff
  /** Used while one side refuses the other for a lasting reason (`ConnectionEnd.refused`). */
  readonly #refusal: Backoff
  readonly #abort = new AbortController()
  #timer: Timer | undefined
  /** The last attempt to connect; it may have ended. */
  #attempting: Promise<void> | undefined
  #busy = false
  #tried = false
  #stopped = false

  constructor(options: DialerOptions) {
    this.#options = options
    const { limits: { backoffMinMs, backoffMaxMs, backoffAbsentMaxMs }, random } = options
    this.#absence = new Backoff(backoffMinMs, backoffAbsentMaxMs, random)
    this.#refusal = new Backoff(backoffMinMs, backoffMaxMs, random)
  }

  /** True when at least one attempt has ended, either without a link or with a link that has closed since. */
  get tried(): boolean { return this.#tried }

  /** Dials at once instead of after the pause, unless an attempt is under way or a link is open. */
  dial(): void {
    if (this.#stopped || this.#busy || !this.#options.wanted()) return
    this.#timer?.cancel()
    this.#timer = undefined
    this.#busy = true
    this.#attempting = this.#attempt()
  }

  /** Dials after a pause. Called when the link that made this connection unnecessary has closed. */
  resume(): void {
    this.#pauseIfWanted(this.#absence)
  }

  /** Begins again with the shortest pauses. */
  reset(): void {
    this.#absence.reset()
    this.#refusal.reset()
  }

  /** Stops dialing, and resolves when no attempt is under way. A connection that was handed over stays open. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#timer?.cancel()
    this.#abort.abort()
    await this.#attempting
  }

  async #attempt(): Promise<void> {
    const { network, address, limits, onConnection, onFailed } = this.#options
    try {
      const connection = await network.connect(parseAddress(address), {
        timeoutMs: limits.connectTimeoutMs, signal: this.#abort.signal,
      })
      if (this.#stopped) return connection.close('this node does not dial the peer any more')
      onConnection(connection, ({ lifetimeMs, refused }) => {
        this.#busy = false
        this.#tried = true
        if (lifetimeMs > limits.backoffMaxMs) this.reset()
        this.#pauseIfWanted(refused ? this.#refusal : this.#absence)
      })
    } catch (error) {
      this.#busy = false
      this.#tried = true
      if (this.#stopped) return
      this.#refusal.reset()
      onFailed(error, this.#pause(this.#absence))
    }
  }

  #pauseIfWanted(backoff: Backoff): void {
    if (!this.#stopped && !this.#busy && !this.#timer && this.#options.wanted()) this.#pause(backoff)
  }

  #pause(backoff: Backoff): number {
    const ms = backoff.next()
    this.#timer = this.#options.clock.setTimer(ms, () => {
      this.#timer = undefined
      this.dial()
    })
    return ms
  }
}

/**
 * Parses `host:port`. An IPv6 address must be in brackets.
 *
 * @throws Error that shows the text and the expected form
 */
export function parseAddress(text: string): NetworkAddress {
  const match = /^(?:\[([0-9a-fA-F:.%]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text)
  const host = match?.[1] ?? match?.[2]
  const port = Number(match?.[3])
  if (host === undefined || !(port > 0 && port < 65536)) throw new Error(`${text} is not an address: write host:port`)
  return { host, port }
}
