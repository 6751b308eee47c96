import { defaultValues, integer, option } from '@sectional/core/options'
import type { OptionValues } from '@sectional/core/options'
import { defaultRaftDriverOptions } from '../consensus/raft-driver.ts'
import type { RaftDriverOptions } from '../consensus/raft-driver.ts'

/** The identity of this node, from its configuration. */
export interface ControlPlaneIdentity {
  readonly node: string
  /** Address of the cluster listener, `host:port`, as the other nodes reach it. */
  readonly address: string
  readonly zone: string | null
  /**
   * Addresses of the nodes to contact at first. The first one forms a new cluster. Empty: this node forms its own
   * cluster.
   */
  readonly seeds: readonly string[]
}

/** Options of the control plane that can be set in the configuration. */
export const controlDeclarations = {
  /**
   * Milliseconds after its start during which a node with an empty disk forms no cluster, so that members of its former
   * cluster can reach it.
   */
  formationGraceMs: option('cluster/formation_grace_ms', integer({ min: 0, max: 60_000, unit: 'milliseconds' }), {
    default: 2000,
    effect: 'restart',
    help: 'Time for which the first seed, when its disk is empty, waits for members that know it before it forms a new '
      + 'cluster. A cluster of one without a secret does not wait.',
  }),
}

/** Options of the control plane. Times are in milliseconds. */
export interface ControlPlaneOptions extends OptionValues<typeof controlDeclarations> {
  /** Time that a change waits for a majority before it is answered with 503. */
  readonly proposeMs: number
  /** Time that a deletion waits for a majority before it becomes an intent and is answered with 202. */
  readonly deleteMs: number
  /** Time of one attempt at one leader. */
  readonly attemptMs: number
  /** Longest pause between two attempts. It ends when there is news of the leader. */
  readonly retryMs: number
  /** A change is answered once all connected members know it, but at the latest after this time. */
  readonly spreadMs: number
  /** Longest time that a lookup of an unknown name waits for the leader's confirmation. */
  readonly confirmMs: number
  /** Shortest time between two such questions to the leader. */
  readonly confirmIntervalMs: number
  /** Pause after which deletions that were promised are proposed again. */
  readonly intentRetryMs: number
  /** Time that another node has to answer a question about itself (`ControlPlane.ask`). */
  readonly askMs: number
  /** First and longest pause between two rounds of joining; `joinCallMs` limits one call. */
  readonly joinIntervalMs: number
  readonly joinMaxIntervalMs: number
  readonly joinCallMs: number
  /**
   * Longest time that a starting node answers 503 because it has not reached its peers or not heard from the leader.
   */
  readonly startWaitMs: number
  /** Time without a leader after which a member asks whether it is still a member. */
  readonly leaderlessMs: number
  readonly raft: RaftDriverOptions
}

export const defaultControlPlaneOptions: ControlPlaneOptions = {
  proposeMs: 5000, deleteMs: 3000, attemptMs: 2000, retryMs: 200, spreadMs: 1000, confirmMs: 1000,
  confirmIntervalMs: 50,
  intentRetryMs: 1000, askMs: 5000, joinIntervalMs: 250, joinMaxIntervalMs: 4000, joinCallMs: 6000,
  leaderlessMs: 10_000, startWaitMs: 3000,
  raft: defaultRaftDriverOptions,
  ...defaultValues(controlDeclarations),
}
