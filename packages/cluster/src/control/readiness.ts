/**
 * All conditions that can keep a node from serving, in one list. Each condition has a name and the level that it stops,
 * and derives its reason (one sentence for clients and operators) from facts that the control plane collects. To add a
 * condition, add the fact that it reads and a row in `conditions`.
 */

/**
 * The level that an unmet condition stops, from the most to the least severe:
 * - `requests`: every request for data is answered with 503, and `/_up` with 404;
 * - `writes`: writes are answered with 503, and `/_up` with 404; reads are served;
 * - `traffic`: `/_up` is answered with 404, so that load balancers choose another node; requests that arrive are
 *   served.
 */
export type Stops = 'requests' | 'writes' | 'traffic'

/** The facts about this node at the moment of the check. */
export interface ReadinessFacts {
  readonly node: string
  /** The reason that members of the cluster gave for not admitting this node; null when they gave none. */
  readonly refusal: string | null
  /** True when the disk holds the identity of a cluster. */
  readonly admitted: boolean
  /** Index of the last applied entry of the metadata log; 0 before any metadata has arrived. */
  readonly appliedIndex: number
  /** True when the metadata lists this node as a member. */
  readonly listed: boolean
  /**
   * The reason why peers refuse this process: another process has a link under this node's name
   * (`PeerNetwork.rivalReason`). Null when they do not.
   */
  readonly rival: string | null
  /**
   * The reason why this node must not accept writes after it met another cluster (foreign-clusters.ts); null when there
   * is none.
   */
  readonly foreignCluster: string | null
  /** True when the metadata log knows a later start of this node than its data directory does. */
  readonly outdated: boolean
  /** True while the replicas of a data directory that was given up are being given new histories. */
  readonly renewing: boolean
  /** The node that claims to lead but is not followed because its disk is in doubt; null when there is none. */
  readonly ignoredLeader: string | null
  /** Number of log entries that this node has lacked for longer than `metadataLagMs`. */
  readonly lacking: number
  /** What this node still waits for after its start (start-wait.ts); null when it waits for nothing. */
  readonly startWait: string | null
}

export interface Condition {
  readonly name: string
  readonly stops: Stops
  /** Returns the reason why the condition is not met; null when it is met. */
  readonly unmet: (facts: ReadinessFacts) => string | null
}

/** Milliseconds of lag of the metadata after which load balancers shall leave this node out. */
export const metadataLagMs = 5000

const olderCopy = 'the data directory of this node is an older copy of the one that it had'

export function ignoredLeaderReason(leader: string): string {
  return `this node does not follow ${leader}, which leads the metadata log from an older copy of its data directory: `
    + 'go on as after the loss of a majority of the voters (docs/operations.md)'
}

/** In the order in which they are checked: the first unmet one gives the reason. */
export const conditions: readonly Condition[] = [
  { name: 'not refused', stops: 'requests', unmet: ({ refusal }) =>
    refusal === null ? null : `this node is not admitted: ${refusal}` },
  { name: 'only process of its name', stops: 'requests', unmet: ({ rival }) =>
    rival === null ? null : `the cluster refuses this process: ${rival}` },
  { name: 'replicas renewed', stops: 'requests', unmet: ({ renewing }) =>
    renewing ? `${olderCopy}: its replicas get new histories before it is admitted anew` : null },
  { name: 'admitted', stops: 'requests', unmet: ({ admitted }) =>
    admitted ? null : 'this node has not been admitted to a cluster yet' },
  { name: 'metadata received', stops: 'requests', unmet: ({ appliedIndex }) =>
    appliedIndex > 0 ? null : 'this node has not received the cluster\'s metadata yet' },
  { name: 'member', stops: 'requests', unmet: ({ listed }) =>
    listed ? null : 'this node is not a member of its cluster, by the metadata it has received so far' },
  { name: 'current data directory', stops: 'requests', unmet: ({ outdated }) =>
    outdated ? `${olderCopy}: the node is to be admitted anew` : null },
  { name: 'started', stops: 'requests', unmet: ({ startWait }) =>
    startWait === null ? null : `this node has just started: ${startWait}` },
  { name: 'no other cluster', stops: 'writes', unmet: ({ foreignCluster }) => foreignCluster },
  {
    name: 'leader that is followed', stops: 'traffic',
    unmet: ({ ignoredLeader }) => ignoredLeader === null ? null : ignoredLeaderReason(ignoredLeader),
  },
  {
    name: 'current metadata', stops: 'traffic',
    unmet: ({ lacking }) =>
      lacking === 0
        ? null
        : `this node's metadata lags: it lacks ${lacking} entries that the leader committed more than `
          + `${metadataLagMs / 1000} s ago`,
  },
]

/** The conditions that stop a level or a more severe one. Computed once, because every request reads them. */
const stopping: Readonly<Record<Stops, readonly Condition[]>> = {
  requests: conditions.filter(({ stops }) => stops === 'requests'),
  writes: conditions.filter(({ stops }) => stops !== 'traffic'),
  traffic: conditions,
}

/**
 * Returns the reason of the first unmet condition that stops `what` or a more severe level; null when there is none.
 */
export function unmetReason(facts: ReadinessFacts, what: Stops): string | null {
  for (const { unmet } of stopping[what]) {
    const reason = unmet(facts)
    if (reason !== null) return reason
  }
  return null
}
