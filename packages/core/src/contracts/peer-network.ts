/**
 * The contract by which a node reaches its peers. It is declared here because `cluster` uses it and `rpc` implements
 * it, and these two packages never import each other (docs/architecture.md#packages).
 */
import { indexVerbs, type IndexReplica } from './index-replica.ts'
import { shardVerbs, type ShardId, type ShardReplica } from './shard-replica.ts'
import { bareCall, call, type VerbsOf } from './verb-table.ts'

/** The identity that a peer claims. The handshake proves that the peer holds the cluster secret. */
export interface PeerIdentity {
  /** Node name, unique in the cluster, for instance `node1@127.0.0.1`. */
  readonly node: string
  /** Address of its cluster listener, `host:port`. */
  readonly address: string
  /** The cluster to which it belongs; null: it was not admitted to any cluster yet. */
  readonly clusterId: string | null
  /** Undefined: the node runs an earlier version, which does not send it. */
  readonly start?: PeerStart
}

/** What a node's data directory records about the starts of its process. */
export interface PeerStart {
  /**
   * The random id of this start, then the ids of earlier starts for which the node does not know whether the metadata
   * log recorded them.
   */
  readonly ids: readonly string[]
  /** Index of the entry of the metadata log that recorded the newest start known to be recorded; 0: none is known. */
  readonly confirmed: number
}

/** A handshake with a node of another cluster. That node holds the same cluster secret, but no link with it opens. */
export interface ForeignContact {
  readonly peer: PeerIdentity
  /** The address at which this node dialed it; null: the peer dialed this node. */
  readonly dialed: string | null
  /** True when the peer dialed this node's address because its own cluster has a member of this node's name there. */
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
 * Messages of the consensus core (Ongaro & Ousterhout 2014; pre-vote: Ongaro's thesis, section 9.6). Each goes one way
 * and may be lost, duplicated or delayed.
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
  /** `received`: how many bytes of that snapshot the sender of this message holds, counted from the beginning. */
  | { readonly type: 'snapshot-reply'; readonly index: number; readonly received: number; readonly round: number }
)

/** One piece of a snapshot of the state machine. */
export interface SnapshotPiece {
  readonly type: 'snapshot'
  readonly index: number
  readonly snapshotTerm: number
  readonly configuration: VotingConfiguration
  /** The bytes of this piece. */
  readonly state: Uint8Array
  /** Position of the piece in the snapshot, in bytes. */
  readonly offset: number
  /** Size of the whole snapshot in bytes. */
  readonly totalBytes: number
  /** CRC-32 of the whole snapshot; null: not known. */
  readonly checksum: number | null
  readonly round: number
}

export type ProposeReply =
  /** The command was applied at `index`; `result` is the state machine's answer, a JSON value. */
  | { readonly kind: 'applied'; readonly index: number; readonly result: unknown }
  /** This node is not the leader; `leader` is the node that it takes for the leader, or null when it knows of none. */
  | { readonly kind: 'not-leader'; readonly leader: string | null }
  /** No majority confirmed the command before the deadline. The command may still be applied later. */
  | { readonly kind: 'timeout' }

export interface PeerStatus {
  readonly node: string
  readonly address: string
  readonly clusterId: string | null
  /** True when the node's disk records no admission to any cluster. */
  readonly fresh: boolean
  readonly leader: string | null
}

export interface JoinRequest { readonly node: string; readonly address: string; readonly zone: string | null }
export type JoinReply =
  | { readonly kind: 'admitted'; readonly clusterId: string }
  | { readonly kind: 'refused'; readonly reason: string }
  /** The data directory is an older copy. The node must give it up and be admitted anew. */
  | { readonly kind: 'outdated' }
  | { readonly kind: 'try-later'; readonly leader: string | null }

/** All questions that one node's HTTP API may ask another node (`/_node/{name}/...`, `_active_tasks`). */
export const nodeQuestions = [
  'stats', 'system', 'prometheus', 'versions', 'active-tasks', 'config', 'replicas',
] as const
export type NodeQuestion = (typeof nodeQuestions)[number]

/** `argument` is JSON; undefined: the question has none. */
export interface AskRequest { readonly question: NodeQuestion; readonly argument: unknown }

export const controlVerbs = {
  status: bareCall<PeerStatus>(),
  join: call<JoinRequest, JoinReply>(),
  /** Appends a command, a JSON value, to the metadata log, provided that the called node is the leader. */
  propose: call<unknown, ProposeReply>(),
  /** The answer is a JSON value. */
  ask: call<AskRequest, unknown>(),
  /**
   * Tells a node that a design document of a database has changed. The request is the incarnation of the database. The
   * message may be lost.
   */
  designChanged: call<string, void>(),
}

/**
 * The calls that a node offers its peers besides those on shard replicas. A guest, which is a node that was not
 * admitted yet, may only call `status` and `join`.
 */
export interface ControlPeer extends VerbsOf<typeof controlVerbs> {
  /** Sends a consensus message. It may be lost, and no reply follows. */
  sendRaft(message: RaftMessage): void
}

/** The contracts of a shard that a node offers its peers. Names of verbs are unique across all of them. */
export const shardPeerVerbs = { replica: shardVerbs, indexes: indexVerbs }

/** What a node has of one shard: its replica, and the indexes of that replica. */
export interface ShardPeer extends VerbsOf<typeof shardPeerVerbs> {}

export interface PeerHandlers {
  /** Returns the part of this node that answers `ControlPeer` calls; `from` is the caller's proven identity. */
  control(from: PeerIdentity): ControlPeer
  /**
   * Returns the local replica, or undefined when this node does not host it.
   * @throws ReplicaError when `from` may not use it
   */
  replica(shard: ShardId, from: PeerIdentity): ShardReplica | undefined
  /**
   * Returns the indexes of the local replica, or undefined when this node has none for that shard. Peers' calls then
   * reject with `not_hosted`.
   */
  indexes(shard: ShardId): IndexReplica | undefined
}

/** The links of one node to all its peers. A link that breaks is opened again, with backoff. */
export interface PeerNetwork {
  /** Opens the listener and begins to answer. Rejects when the address cannot be bound. */
  start(handlers: PeerHandlers): Promise<void>
  /** Closes all links and fails calls in flight with `closed`; resolves when nothing is left open. */
  stop(): Promise<void>
  /**
   * Sets the addresses with which this node keeps a link: members and seeds, without this node. Links to all other
   * addresses are closed.
   *
   * @param names the member that is known at an address, by address; the handshake tells this name to the node that
   * answers there
   */
  setPeers(addresses: readonly string[], names?: ReadonlyMap<string, string>): void
  /**
   * Announces a new identity (after admission). Every link is opened again with a new handshake, unless only the record
   * of the same start has changed: later handshakes then announce it.
   */
  setIdentity(identity: PeerIdentity): void
  /**
   * Returns the addresses of `setPeers` to which no link is open and for which no attempt to open one has ended yet.
   * The peer there may be up.
   */
  untried(): readonly string[]
  /**
   * Returns the reason of a peer that refused this process because another process, which answers, has a link under the
   * same node name. null: no peer has refused for this reason since the last link opened.
   */
  rivalReason(): string | null
  /** Returns the peers that have an open, authenticated link now. */
  connected(): readonly PeerIdentity[]
  /** `listener` is called when a link opens or the last link to a node closes. Returns an unsubscribe function. */
  onChange(listener: (peer: PeerIdentity, up: boolean) => void): () => void
  /** `listener` is called at each handshake with a node of another cluster. Returns an unsubscribe function. */
  onForeign(listener: (contact: ForeignContact) => void): () => void
  /** Returns a stub for the node. Its calls reject with `unreachable` while no link is open. */
  control(node: string): ControlPeer
  replica(node: string, shard: ShardId): ShardReplica
  /** Returns a stub for the indexes of that node's replica. Its calls reject with `not_hosted` when there are none. */
  indexes(node: string, shard: ShardId): IndexReplica
}
