/** All limits of this package. They apply to each link, unless stated otherwise. */
export interface RpcLimits {
  /** Most bytes of a message, header and payload; also the most that this node buffers while fragments arrive. */
  readonly maxMessageBytes: number
  /** Messages are packed into frames of at most this size, and longer messages are split into frames of this size. */
  readonly frameBytes: number
  /** Most outgoing bytes not yet handed to the operating system; above this, new calls fail with `overloaded`. */
  readonly maxQueuedBytes: number
  /** Raft messages are dropped when more bytes than this are queued. */
  readonly maxRaftQueuedBytes: number
  /** Most calls and streams on replicas that wait for an answer; above this, new calls fail with `overloaded`. */
  readonly maxCallsOut: number
  /** Most of the peer's calls and streams on replicas that are served at a time; others get `overloaded`. */
  readonly maxCallsServed: number
  /**
   * Most calls that wait for a replica's next change or for the build of an index. Such a call may wait for minutes, so
   * these calls are counted separately at both ends.
   */
  readonly maxWaitsOut: number
  readonly maxWaitsServed: number
  /** Most calls about metadata (`ControlPeer`). They are also counted separately. */
  readonly maxControlCallsOut: number
  readonly maxControlCallsServed: number
  /** Most payload bytes of the calls that are served at a time; further calls get `overloaded`. */
  readonly maxServedBytes: number
  /** Window of a stream: most pages and bytes that are sent before the reader takes them. */
  readonly streamPages: number
  readonly streamBytes: number
  /** Window of an upload: most bytes that are sent before the far end takes them. */
  readonly uploadBytes: number
  /** A page of rows with more bytes than this is split. */
  readonly pageBytes: number
  /** A stream whose reader grants nothing for this time is ended, and an upload whose sender sends nothing. */
  readonly streamStallMs: number
  readonly connectTimeoutMs: number
  /** Longest time from the connection to the open link. */
  readonly handshakeTimeoutMs: number
  /** Most incoming connections of the whole node that have not finished the handshake. */
  readonly maxUnauthenticated: number
  /** Each end sends at least one message in this time. */
  readonly heartbeatMs: number
  /** A link over which nothing was received for this time is closed. */
  readonly silenceMs: number
  /**
   * When another process connects under the name of a linked node, the linked process must answer within this time;
   * otherwise its links are closed.
   */
  readonly rivalProbeMs: number
  /** A node that is stopping answers the calls that it serves for at most this time before it closes its links. */
  readonly drainMs: number
  /** The pause before the next attempt to dial doubles from `Min` to `Max`. It is shortened by up to half at random. */
  readonly backoffMinMs: number
  readonly backoffMaxMs: number
  /**
   * The longest such pause while the address is only unreachable and no side refuses the other. A node that starts is
   * found within this time.
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
