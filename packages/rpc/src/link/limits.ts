/** Every bound of the package. All are per link unless said. */
export interface RpcLimits {
  /** Longest message, header and payload; also what a peer may make this node hold while fragments arrive. */
  readonly maxMessageBytes: number
  /** Messages are packed into frames up to this size, and longer ones cut into frames of it. */
  readonly frameBytes: number
  /** Outgoing bytes not yet handed to the system; above it new calls fail `overloaded`. */
  readonly maxQueuedBytes: number
  /** Raft messages are dropped above this many queued bytes. */
  readonly maxRaftQueuedBytes: number
  /** Calls and streams on replicas that wait for an answer; above it new calls fail `overloaded`. */
  readonly maxCallsOut: number
  /** Calls and streams of the peer on replicas that are being served; above it they are answered `overloaded`. */
  readonly maxCallsServed: number
  /**
   * Calls that wait for a replica's next change, for minutes: counted apart, at either end, from all that are to be
   * answered soon.
   */
  readonly maxWaitsOut: number
  readonly maxWaitsServed: number
  /** Calls about metadata (`ControlPeer`): counted apart likewise. */
  readonly maxControlCallsOut: number
  readonly maxControlCallsServed: number
  /** Payload bytes of the calls being served; above it they are answered `overloaded`. */
  readonly maxServedBytes: number
  /** Window of a stream: pages and bytes under way that the reader has not taken. */
  readonly streamPages: number
  readonly streamBytes: number
  /** Window of an upload: bytes under way that the far end has not taken. */
  readonly uploadBytes: number
  /** Rows of one page are split so that a page stays near this size. */
  readonly pageBytes: number
  /** A stream whose reader grants nothing for so long is ended. */
  readonly streamStallMs: number
  readonly connectTimeoutMs: number
  /** From the connection to the open link. */
  readonly handshakeTimeoutMs: number
  /** Incoming connections of the whole node that have not finished the handshake. */
  readonly maxUnauthenticated: number
  /** Something is sent at least this often. */
  readonly heartbeatMs: number
  /** A peer that is silent for so long is taken for dead. */
  readonly silenceMs: number
  /**
   * When another process connects under a linked node's name, the linked one has so long to answer before it is taken
   * for dead.
   */
  readonly rivalProbeMs: number
  /** A node that stops answers the calls that it serves for so long before it closes its links. */
  readonly drainMs: number
  /** Pause before a new attempt to dial: doubles from `Min` to `Max`, of which a random half is left out. */
  readonly backoffMinMs: number
  readonly backoffMaxMs: number
  /**
   * The longest such pause while nobody at the address refuses or is refused: a node that comes up is found within it.
   */
  readonly backoffAbsentMaxMs: number
}

const MiB = 1024 * 1024

export const defaultLimits: RpcLimits = Object.freeze({
  maxMessageBytes: 64 * MiB,
  frameBytes: MiB,
  maxQueuedBytes: 64 * MiB,
  maxRaftQueuedBytes: 16 * MiB,
  maxCallsOut: 8192,
  maxCallsServed: 4096,
  maxWaitsOut: 16_384,
  maxWaitsServed: 16_384,
  maxControlCallsOut: 2048,
  maxControlCallsServed: 2048,
  maxServedBytes: 128 * MiB,
  streamPages: 4,
  streamBytes: MiB,
  uploadBytes: MiB / 2,
  pageBytes: 256 * 1024,
  streamStallMs: 300_000,
  connectTimeoutMs: 3000,
  handshakeTimeoutMs: 5000,
  maxUnauthenticated: 64,
  heartbeatMs: 1000,
  silenceMs: 4000,
  rivalProbeMs: 800,
  drainMs: 1000,
  backoffMinMs: 50,
  backoffMaxMs: 5000,
  backoffAbsentMaxMs: 1000,
})
