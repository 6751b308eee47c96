/** What goes into the consensus core besides messages and ticks, and the batches of work that come out. */
import type { LogEntry, RaftMessage, VotingConfiguration } from '@sectional/core'

export interface RaftOptions {
  /** Ticks without a leader before an election: drawn anew each time from this up to twice this. */
  readonly electionTicks: number
  readonly heartbeatTicks: number
  readonly maxEntriesPerAppend: number
  readonly maxBytesPerAppend: number
  /** Messages with entries on their way to one follower. */
  readonly maxAppendsInFlight: number
  /** Heartbeats after which an unanswered piece of a snapshot is sent again. */
  readonly snapshotResendHeartbeats: number
  /** Bytes of one message with a piece of a snapshot. */
  readonly snapshotPieceBytes: number
  /** Bytes of a snapshot that a follower takes: the memory that a leader may claim. */
  readonly snapshotBytesMax: number
  /** Entries beyond the commit index; further proposals are refused. */
  readonly maxUncommittedEntries: number
}

export const defaultRaftOptions: RaftOptions = {
  electionTicks: 10, heartbeatTicks: 2, maxEntriesPerAppend: 256, maxBytesPerAppend: 1024 * 1024, maxAppendsInFlight: 16,
  snapshotResendHeartbeats: 10, snapshotPieceBytes: 256 * 1024, snapshotBytesMax: 1024 * 1024 * 1024, maxUncommittedEntries: 4096,
}

export interface HardState {
  readonly term: number
  /** Who got this node's vote in `term`. */
  readonly vote: string | null
  readonly commit: number
}

export interface RaftSnapshot {
  readonly index: number
  readonly term: number
  readonly configuration: VotingConfiguration
  readonly state: Uint8Array
  /** CRC-32 of `state`; null: not known, since it came from a peer of protocol version 1. */
  readonly checksum: number | null
}

export interface Persist {
  readonly hardState: HardState
  /** Replaces the whole stored log and state machine. */
  readonly snapshot: RaftSnapshot | null
  /** New entries. Stored entries from the first of these on are replaced, and none stays behind `lastIndex`. */
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
  /** Reads that may be answered once `index` is applied; null: this node does not lead any more. */
  readonly reads: readonly { readonly id: number; readonly index: number | null }[]
}

export type Role = 'follower' | 'pre-candidate' | 'candidate' | 'leader'
export type Refusal = 'not-leader' | 'busy'
