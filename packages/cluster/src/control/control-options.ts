import { defaultValues, integer, option } from '@sectional/core/options'
import type { OptionValues } from '@sectional/core/options'
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

/** Those of the options below that the configuration has. */
export const controlDeclarations = {
  /**
   * A node with an empty disk forms no cluster for so long after its start, so that members of its former cluster can
   * find it.
   */
  formationGraceMs: option('cluster/formation_grace_ms', integer({ min: 0, max: 60_000, unit: 'milliseconds' }), {
    default: 2000,
    effect: 'restart',
    help: 'Time for which the first seed, when its disk is empty, waits for members that know it before it forms a new '
      + 'cluster. A cluster of one without a secret does not wait.',
  }),
}

/** Times in milliseconds. */
export interface ControlPlaneOptions extends OptionValues<typeof controlDeclarations> {
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
  /** The longest that a node that starts answers 503 because it has not reached its peers, or not heard from the leader. */
  readonly startWaitMs: number
  /** Without a leader for this long, a member asks whether it still is one. */
  readonly leaderlessMs: number
  readonly raft: RaftDriverOptions
}

export const defaultControlPlaneOptions: ControlPlaneOptions = {
  proposeMs: 5000, deleteMs: 3000, attemptMs: 2000, retryMs: 200, spreadMs: 1000, confirmMs: 1000, confirmIntervalMs: 50,
  intentRetryMs: 1000, askMs: 5000, joinIntervalMs: 250, joinMaxIntervalMs: 4000, joinCallMs: 6000,
  leaderlessMs: 10_000, startWaitMs: 3000,
  raft: defaultRaftDriverOptions,
  ...defaultValues(controlDeclarations),
}
