/**
 * Connections between nodes that carry messages. Messages are ordered and reliable while the connection is open, which
 * may break at any moment.
 */
export interface Network {
  /**
   * @param onRefused receives callers that were refused because of TLS
   * @throws Error that names the address when it cannot be bound
   */
  listen(
    address: NetworkAddress, onConnection: (connection: Connection) => void,
    onRefused?: (caller: RefusedCaller) => void,
  ): Promise<NetworkListener>
  /** Rejects when the address does not answer within `timeoutMs`. */
  connect(
    address: NetworkAddress, options: { readonly timeoutMs: number; readonly signal?: AbortSignal },
  ): Promise<Connection>
}

export interface RefusedCaller {
  /** Null when the system has forgotten it, as after a refused certificate. */
  readonly host: string | null
  /** `garbage`: it does not speak TLS, or not the version that is required. */
  readonly cause: 'certificate' | 'garbage'
  /** A sentence for the operator. */
  readonly reason: string
}

export interface NetworkAddress { readonly host: string; readonly port: number }

/** The default limit of a frame in bytes; a larger frame ends the connection. */
export const defaultMaxFrameBytes = 16 * 1024 * 1024

/** Returns `host:port`; IPv6 hosts are in brackets. */
export function formatAddress({ host, port }: NetworkAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

export interface NetworkListener {
  /** The bound address. When port 0 was requested, it contains the actual port. */
  readonly address: NetworkAddress
  /** Stops accepting; open connections continue. */
  close(): Promise<void>
}

export interface Connection {
  readonly remoteAddress: string
  /**
   * The names in the verified certificate of the peer (its subjectAltName), each with its kind as Node writes it:
   * `DNS:db1.example.org`, `IP Address:10.0.0.1`, `URI:urn:a`. Null without TLS.
   */
  readonly certifiedNames: readonly string[] | null
  /** Bytes that `send` has accepted and not yet passed to the operating system. */
  readonly bufferedBytes: number
  /** Sends a frame of at most `maxFrameBytes` (network option); does nothing after `close`. The buffer is not kept. */
  send(frame: Uint8Array): void
  /** Set it once, before the next turn of the event loop. Frames that arrive earlier wait for it. */
  onFrame: ((frame: Uint8Array) => void) | undefined
  /** Called exactly once, when the connection has ended. */
  onClose: ((reason: string) => void) | undefined
  /** `pause` stops reading and `resume` continues it, which exerts backpressure on the sender. */
  pause(): void
  resume(): void
  /**
   * Breaks the connection when more bytes arrive than these, until it is called with null. A frame is in memory before
   * it is delivered, so a peer of which nothing is known could fill the memory with one that it does not end.
   */
  limitReceived(bytesMax: number | null): void
  close(reason: string): void
}
