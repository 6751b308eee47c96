import type { Clock, Connection, Network, NetworkAddress, Random, Timer } from '@sectional/runtime'
import type { RpcLimits } from './limits.ts'
import { Backoff } from './backoff.ts'

export interface ConnectionEnd {
  /** How long the link was open; 0: the handshake failed. */
  readonly lifetimeMs: number
  /** The handshake failed for a reason that does not go away by itself. */
  readonly refused: boolean
}

export interface DialerOptions {
  readonly address: string
  readonly network: Network
  readonly clock: Clock
  readonly random: Random
  readonly limits: RpcLimits
  /** False: a link to the node at this address is open already. */
  readonly wanted: () => boolean
  /** Shakes hands on the new connection; calls back once, when the attempt failed or its link has closed. */
  readonly onConnection: (connection: Connection, done: (end: ConnectionEnd) => void) => void
  readonly onFailed: (error: unknown, nextAttemptMs: number) => void
}

/** Keeps a connection to one address, as long as it is wanted. */
export class Dialer {
  readonly #options: DialerOptions
  /** While the node is away, or comes and goes: it is to be found soon once it is back, also with an empty disk. */
  readonly #absence: Backoff
  /** While it refuses, or is refused, for a reason that somebody has to remove. */
  readonly #refusal: Backoff
  readonly #abort = new AbortController()
  #timer: Timer | undefined
  /** The attempt to connect that is under way. */
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

  /** At least one attempt has ended: without a link, or with one that has closed since. */
  get tried(): boolean { return this.#tried }

  /** Dials now instead of after the pause, unless an attempt is under way or a link is open. */
  dial(): void {
    if (this.#stopped || this.#busy || !this.#options.wanted()) return
    this.#timer?.cancel()
    this.#timer = undefined
    this.#busy = true
    this.#attempting = this.#attempt()
  }

  /** The link that made an attempt unwanted has gone: dials after a pause. */
  resume(): void {
    this.#pauseIfWanted(this.#absence)
  }

  /** Begins anew with short pauses. */
  reset(): void {
    this.#absence.reset()
    this.#refusal.reset()
  }

  /** Resolves when no attempt is under way; what an attempt has led to is its owner's. */
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
      if (this.#stopped) return connection.close('not wanted any more')
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
 * `host:port`, the host in brackets when it is an IPv6 address.
 * @throws Error that names what is wrong
 */
export function parseAddress(text: string): NetworkAddress {
  const match = /^(?:\[([0-9a-fA-F:.%]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text)
  const host = match?.[1] ?? match?.[2]
  const port = Number(match?.[3])
  if (host === undefined || !(port > 0 && port < 65536)) throw new Error(`${text} is no address: host:port is expected`)
  return { host, port }
}
