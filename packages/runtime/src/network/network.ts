/** Message connections between nodes: ordered, reliable while they live, able to die at any moment. */
export interface Network {
  /** @throws Error that names the address when it cannot be bound */
  listen(address: NetworkAddress, onConnection: (connection: Connection) => void): Promise<NetworkListener>
  /** Rejects when nobody answers within `timeoutMs`. */
  connect(
    address: NetworkAddress, options: { readonly timeoutMs: number; readonly signal?: AbortSignal },
  ): Promise<Connection>
}

export interface NetworkAddress { readonly host: string; readonly port: number }

/** Frames larger than this end the connection unless the network was given another limit. */
export const defaultMaxFrameBytes = 16 * 1024 * 1024

/** `host:port`, IPv6 hosts in brackets. */
export function formatAddress({ host, port }: NetworkAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

export interface NetworkListener {
  /** The bound address (a port of 0 is replaced by the real one). */
  readonly address: NetworkAddress
  /** Accepts no more; connections that are open live on. */
  close(): Promise<void>
}

export interface Connection {
  readonly remoteAddress: string
  /** Bytes accepted by `send` and not yet handed to the system. */
  readonly bufferedBytes: number
  /** One frame of at most `maxFrameBytes` (network option); after close it does nothing. The buffer is not kept. */
  send(frame: Uint8Array): void
  /** Set once, before the next turn of the event loop; frames that came earlier wait for it. */
  onFrame: ((frame: Uint8Array) => void) | undefined
  /** Called exactly once. */
  onClose: ((reason: string) => void) | undefined
  /** Stops and restarts reading: back-pressure to the sender. */
  pause(): void
  resume(): void
  close(reason: string): void
}
