/**
 * How a node reaches its peers: declared here because `cluster` uses it and `rpc` implements it, and the
 * two never import each other (docs/architecture.md#packages).
 */
import type { ShardId, ShardReplica } from './shard-replica.ts'
import { bareCall, call, type VerbsOf } from './verb-table.ts'

/** Who a peer says it is, proven by the cluster secret. */
export interface PeerIdentity {
  /** Node name, unique in the cluster, for instance `node1@127.0.0.1`. */
  readonly node: string
  /** Address of its cluster listener, `host:port`. */
  readonly address: string
  /** The cluster it belongs to; null: not admitted anywhere yet. */
  readonly clusterId: string | null
  /** Undefined: a node of an earlier version, which does not say it. */
  readonly start?: PeerStart
}

/** What a node knows about the starts of its process, by its data directory. */
export interface PeerStart {
  /**
   * Random id of this start, then those of earlier ones of which it does not know whether the metadata log recorded
   * them.
   */
  readonly ids: readonly string[]
  /** Index in the metadata log at which the newest start that it knows as recorded was recorded; 0: none. */
  readonly confirmed: number
}

/** A node of another cluster was met: it holds the cluster secret, and no link with it opens. */
export interface ForeignMeeting {
  readonly peer: PeerIdentity
  /** The address at which this node dialed it; null: the peer dialed this node. */
  readonly dialed: string | null
  /** The peer dialed this node's address, and its cluster has this node's name for the member at that address. */
  readonly claimed: boolean
}

/** One entry of the replicated log. `payload` is opaque to the log. */
export interface LogEntry {
  readonly index: number
  readonly term: number
  readonly kind: 'command' | 'configuration' | 'noop'
  readonly payload: Uint8Array
}

/** Voters and learners as of one log index. */
export interface VotingConfiguration { readonly voters: readonly string[]; readonly learners: readonly string[] }

/**
 * Messages of the consensus core (Ongaro & Ousterhout 2014; pre-vote: Ongaro's thesis 9.6). One way, may be lost,
 * duplicated or late.
 */
export type RaftMessage = { readonly from: string; readonly to: string; readonly term: number } & (
  | { readonly type: 'vote-request'; readonly lastIndex: number; readonly lastTerm: number; readonly preVote: boolean }
  | { readonly type: 'vote-reply'; readonly granted: boolean; readonly preVote: boolean }
  | {
    readonly type: 'append'
    readonly previousIndex: number
    readonly previousTerm: number
    readonly commit: number
    readonly entries: readonly LogEntry[]
    readonly round: number
  }
  | {
    readonly type: 'append-reply'
    readonly success: boolean
    readonly matchIndex: number
    readonly conflictIndex: number
    readonly round: number
  }
  | SnapshotPiece
  /** How many bytes of that snapshot the sender holds, from its beginning. */
  | { readonly type: 'snapshot-reply'; readonly index: number; readonly received: number; readonly round: number }
)

/**
 * A piece of a snapshot of the state machine. `state` lies at `offset` of its `totalBytes`, whose CRC-32 is `checksum`;
 * null: not known.
 */
export interface SnapshotPiece {
  readonly type: 'snapshot'
  readonly index: number
  readonly snapshotTerm: number
  readonly configuration: VotingConfiguration
  readonly state: Uint8Array
  readonly offset: number
  readonly totalBytes: number
  readonly checksum: number | null
  readonly round: number
}

export type ProposeReply =
  /** The command was applied at `index`; `result` is what the state machine answered, JSON. */
  | { readonly kind: 'applied'; readonly index: number; readonly result: unknown }
  /** This node does not lead; `leader` may be null while nobody does. */
  | { readonly kind: 'not-leader'; readonly leader: string | null }
  /** No majority within the deadline. The command may still be applied later. */
  | { readonly kind: 'timeout' }

export interface PeerStatus {
  readonly node: string
  readonly address: string
  readonly clusterId: string | null
  /** True when its own disk says it was never admitted to any cluster. */
  readonly fresh: boolean
  readonly leader: string | null
}

export interface JoinRequest { readonly node: string; readonly address: string; readonly zone: string | null }
export type JoinReply =
  | { readonly kind: 'admitted'; readonly clusterId: string }
  | { readonly kind: 'refused'; readonly reason: string }
  /** The data directory is an older copy: it must be given up, and the node admitted anew. */
  | { readonly kind: 'outdated' }
  | { readonly kind: 'try-later'; readonly leader: string | null }

/** Closed set of questions that one node's HTTP API asks another node (`/_node/{name}/...`, `_active_tasks`). */
export const nodeQuestions = [
  'stats', 'system', 'prometheus', 'versions', 'active-tasks', 'config', 'replicas',
] as const
export type NodeQuestion = (typeof nodeQuestions)[number]

/** `argument` is JSON; undefined: the question has none. */
export interface AskRequest { readonly question: NodeQuestion; readonly argument: unknown }

export const controlVerbs = {
  status: bareCall<PeerStatus>(),
  join: call<JoinRequest, JoinReply>(),
  /** Appends a command, which is JSON, to the metadata log, if the node that is asked leads. */
  propose: call<unknown, ProposeReply>(),
  /** The answer is JSON. */
  ask: call<AskRequest, unknown>(),
}

/** What a node offers its peers besides shard replicas. A guest (not admitted) may only call `status` and `join`. */
export interface ControlPeer extends VerbsOf<typeof controlVerbs> {
  /** Sends a consensus message, which may be lost. */
  sendRaft(message: RaftMessage): void
}

export interface PeerHandlers {
  /** The part of this node that answers `ControlPeer` calls; `from` is the caller's proven identity. */
  control(from: PeerIdentity): ControlPeer
  /** The local replica, or undefined when it is not hosted here. */
  replica(shard: ShardId): ShardReplica | undefined
}

/** Links to every peer, kept up with backoff. One per node. */
export interface PeerNetwork {
  /** Opens the listener and begins to answer. Rejects when the address cannot be bound. */
  start(handlers: PeerHandlers): Promise<void>
  /** Ends links, fails calls in flight with `closed`; resolves when nothing is left open. */
  stop(): Promise<void>
  /**
   * The addresses to keep a link with (members and seeds, without this node); others are closed. `names` has the member
   * that is known at an address, where one is; it is told to whoever answers there.
   */
  setPeers(addresses: readonly string[], names?: ReadonlyMap<string, string>): void
  /** Announces a new identity (after admission); links shake hands again. */
  setIdentity(identity: PeerIdentity): void
  /**
   * Addresses given to `setPeers` to which no link is open and no attempt to open one has ended yet: the peer there may
   * be up.
   */
  untried(): readonly string[]
  /**
   * The reason of a peer that refused this process because another process has a link under this node's name and
   * answers; null when no peer did since the last link opened.
   */
  rivalReason(): string | null
  /** Peers with an open, authenticated link now. */
  connected(): readonly PeerIdentity[]
  /** Called when a link opens or the last link to a node closes. Returns an unsubscribe function. */
  onChange(listener: (peer: PeerIdentity, up: boolean) => void): () => void
  /** Called at each handshake with a node of another cluster. Returns an unsubscribe function. */
  onForeign(listener: (meeting: ForeignMeeting) => void): () => void
  /** A stub for the node: calls reject with `unreachable` while no link is open. */
  control(node: string): ControlPeer
  replica(node: string, shard: ShardId): ShardReplica
}
