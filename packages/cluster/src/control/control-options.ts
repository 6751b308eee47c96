import { defaultRaftDriverOptions } from '../consensus/raft-driver.ts'
import type { RaftDriverOptions } from '../consensus/raft-driver.ts'

/** Who this node is, from its configuration. */
export interface ControlPlaneIdentity {
  readonly node: string
  /** Cluster listener, `host:port`, as the other nodes reach it. */
  readonly address: string
  readonly zone: string | null
  /** Addresses of nodes to meet at first; the first one forms a new cluster. Empty: this node forms its own. */
  readonly seeds: readonly string[]
}

/** Times in milliseconds. */
export interface ControlPlaneOptions {
  /** A change waits this long for a majority, then answers 503. */
  readonly proposeMs: number
  /** A deletion waits this long for a majority, then becomes an intent (202). */
  readonly deleteMs: number
  /** One attempt at one leader. */
  readonly attemptMs: number
  readonly retryMs: number
  /** A change is answered once all connected members know it, or after this. */
  readonly spreadMs: number
  /** The longest that a lookup of an unknown name waits for the leader's word. */
  readonly confirmMs: number
  /** At most one such question in this time. */
  readonly confirmIntervalMs: number
  readonly intentRetryMs: number
  readonly askMs: number
  /** Joining: first and longest pause between rounds, and the time for one call. */
  readonly joinIntervalMs: number
  readonly joinMaxIntervalMs: number
  readonly joinCallMs: number
  /** A node with an empty disk forms no cluster for so long after its start, so that members of its former cluster can find it. */
  readonly formationGraceMs: number
  /** The longest that a node that starts answers 503 because it has not reached its peers, or not heard from the leader. */
  readonly startWaitMs: number
  /** Without a leader for this long, a member asks whether it still is one. */
  readonly leaderlessMs: number
  readonly raft: RaftDriverOptions
}

export const defaultControlPlaneOptions: ControlPlaneOptions = {
  proposeMs: 5000, deleteMs: 3000, attemptMs: 2000, retryMs: 200, spreadMs: 1000, confirmMs: 1000, confirmIntervalMs: 50,
  intentRetryMs: 1000, askMs: 5000, joinIntervalMs: 250, joinMaxIntervalMs: 4000, joinCallMs: 6000, leaderlessMs: 10_000, startWaitMs: 3000, formationGraceMs: 2000,
  raft: defaultRaftDriverOptions,
}
