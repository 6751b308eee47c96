/**
 * Everything that can keep a node from serving, in one list. Each condition has a name, says what it stops, and
 * derives its reason (one sentence for clients and operators) from facts that the control plane collects.
 * To add a condition, add the fact that it looks at and a row to `conditions`.
 */

/**
 * What an unmet condition stops, from the most to the least:
 * - `requests`: every request for data is answered 503, and `/_up` 404;
 * - `writes`: writes are answered 503, and `/_up` 404; reads go on;
 * - `traffic`: `/_up` is answered 404, so that load balancers choose another node; requests that arrive are served.
 */
export type Stops = 'requests' | 'writes' | 'traffic'

/** What the control plane knows about this node when it is asked. */
export interface ReadinessFacts {
  readonly node: string
  /** The reason that members of the cluster gave for not admitting this node; null when they gave none. */
  readonly refusal: string | null
  /** The disk holds the identity of a cluster. */
  readonly admitted: boolean
  /** Index of the last applied entry of the metadata log; 0 before any metadata has arrived. */
  readonly appliedIndex: number
  /** The metadata lists this node as a member. */
  readonly listed: boolean
  /** Why peers refuse this process: another one has a link under this node's name (`PeerNetwork.rivalReason`); null: they do not. */
  readonly rival: string | null
  /** Another cluster was met, and this node is the one that must not take writes (foreign-clusters.ts); null: none was. */
  readonly foreignCluster: string | null
  /** The metadata log knows of a later start of this node than this data directory does. */
  readonly outdated: boolean
  /** The replicas on the disk belong to a data directory that was given up, and are being given new histories. */
  readonly renewing: boolean
  /** A node that claims to lead and is not followed, since its disk is in doubt; null: there is none. */
  readonly ignoredLeader: string | null
  /** Entries of the metadata log that this node has lacked for longer than `metadataLagMs`. */
  readonly lacking: number
  /** What this node waits for after its start before it serves (start-wait.ts); null: nothing. */
  readonly startWait: string | null
}

export interface Condition {
  readonly name: string
  readonly stops: Stops
  /** Why the condition is not met; null when it is met. */
  readonly unmet: (facts: ReadinessFacts) => string | null
}

/** A node whose metadata has lagged for longer is left out by load balancers. Milliseconds. */
export const metadataLagMs = 5000

const olderCopy = 'the data directory of this node is an older copy of the one that it had'

export function ignoredLeaderReason(leader: string): string {
  return `this node does not follow ${leader}, which leads the metadata log from an older copy of its data directory: `
    + 'go on as after the loss of a majority of the voters (docs/operations.md)'
}

/** In the order in which they are looked at: the first unmet one gives the reason. */
export const conditions: readonly Condition[] = [
  { name: 'not refused', stops: 'requests', unmet: ({ refusal }) => refusal === null ? null : `this node is not admitted: ${refusal}` },
  { name: 'only process of its name', stops: 'requests', unmet: ({ rival }) => rival === null ? null : `the cluster refuses this process: ${rival}` },
  { name: 'replicas renewed', stops: 'requests', unmet: ({ renewing }) => renewing ? `${olderCopy}: its replicas get new histories before it is admitted anew` : null },
  { name: 'admitted', stops: 'requests', unmet: ({ admitted }) => admitted ? null : 'this node has not been admitted to a cluster yet' },
  { name: 'metadata received', stops: 'requests', unmet: ({ appliedIndex }) => appliedIndex > 0 ? null : 'this node has not received the cluster\'s metadata yet' },
  { name: 'member', stops: 'requests', unmet: ({ listed }) => listed ? null : 'this node is not a member of its cluster, by the metadata it has received so far' },
  { name: 'current data directory', stops: 'requests', unmet: ({ outdated }) => outdated ? `${olderCopy}: the node is to be admitted anew` : null },
  { name: 'started', stops: 'requests', unmet: ({ startWait }) => startWait === null ? null : `this node has just started: ${startWait}` },
  { name: 'no other cluster', stops: 'writes', unmet: ({ foreignCluster }) => foreignCluster },
  {
    name: 'leader that is followed', stops: 'traffic',
    unmet: ({ ignoredLeader }) => ignoredLeader === null ? null : ignoredLeaderReason(ignoredLeader),
  },
  {
    name: 'current metadata', stops: 'traffic',
    unmet: ({ lacking }) => lacking === 0 ? null : `this node's metadata lags: it lacks ${lacking} entries that the leader committed more than ${metadataLagMs / 1000} s ago`,
  },
]

/** The conditions that stop each, or more than that: looked at for every request. */
const stopping: Readonly<Record<Stops, readonly Condition[]>> = {
  requests: conditions.filter(({ stops }) => stops === 'requests'),
  writes: conditions.filter(({ stops }) => stops !== 'traffic'),
  traffic: conditions,
}

/** The reason of the first unmet condition that stops `what`, or more than that; null when there is none. */
export function unmetReason(facts: ReadinessFacts, what: Stops): string | null {
  for (const { unmet } of stopping[what]) {
    const reason = unmet(facts)
    if (reason !== null) return reason
  }
  return null
}
