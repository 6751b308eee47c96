/** The options of the consensus core, and the batches of work that it returns. */
import type { LogEntry, RaftMessage, VotingConfiguration } from '@sectional/core'

export interface RaftOptions {
  /**
   * Ticks without a leader after which a node starts an election. Each wait is drawn at random from this number up to
   * twice this number.
   */
  readonly electionTicks: number
  readonly heartbeatTicks: number
  readonly maxEntriesPerAppend: number
  readonly maxBytesPerAppend: number
  /** Unanswered messages with entries to one follower. */
  readonly maxAppendsInFlight: number
  /** Heartbeats after which an unanswered piece of a snapshot is sent again. */
  readonly snapshotResendHeartbeats: number
  /** Bytes of the state in one message of a snapshot. */
  readonly snapshotPieceBytes: number
  /**
   * Bytes of the largest snapshot that a follower accepts. It bounds the memory that a leader can make a follower
   * allocate.
   */
  readonly snapshotBytesMax: number
  /** Limit of entries beyond the commit index; further proposals are refused as `busy`. */
  readonly maxUncommittedEntries: number
}

export const defaultRaftOptions: RaftOptions = {
  electionTicks: 10, heartbeatTicks: 2, maxEntriesPerAppend: 256, maxBytesPerAppend: 1024 * 1024,
  maxAppendsInFlight: 16,
  snapshotResendHeartbeats: 10, snapshotPieceBytes: 256 * 1024, snapshotBytesMax: 1024 * 1024 * 1024,
  maxUncommittedEntries: 4096,
}

export interface HardState {
  readonly term: number
  /** The node that received this node's vote in `term`; null when it has not voted. */
  readonly vote: string | null
  readonly commit: number
}

export interface RaftSnapshot {
  readonly index: number
  readonly term: number
  readonly configuration: VotingConfiguration
  readonly state: Uint8Array
  /** CRC-32 of `state`; null when unknown, because a peer of protocol version 1 sent the snapshot. */
  readonly checksum: number | null
}

export interface Persist {
  readonly hardState: HardState
  /** When not null, replaces the whole stored log and state machine. */
  readonly snapshot: RaftSnapshot | null
  /**
   * New entries. They replace the stored entries from the first new index on; afterwards the stored log ends at
   * `lastIndex`.
   */
  readonly entries: readonly LogEntry[]
  readonly lastIndex: number
  readonly lastTerm: number
}

export interface RaftWork {
  readonly messages: readonly RaftMessage[]
  readonly persist: Persist | null
  readonly messagesAfterPersist: readonly RaftMessage[]
  readonly restore: RaftSnapshot | null
  readonly committed: readonly LogEntry[]
  /** Reads that may be answered once `index` is applied; index null: this node no longer leads. */
  readonly reads: readonly { readonly id: number; readonly index: number | null }[]
}

export type Role = 'follower' | 'pre-candidate' | 'candidate' | 'leader'
export type Refusal = 'not-leader' | 'busy'
