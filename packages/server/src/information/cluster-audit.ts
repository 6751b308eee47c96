/**
 * Records changes of the cluster in the audit stream: members, and the nodes that hold replicas. Each node records the
 * changes when it learns them. The state that it finds at its start is not a change. The databases of users are
 * recorded by the node that changes them.
 */
import {
  DatabaseMap, type ClusterState, type ControlPlane, type DatabaseRecord, type UserDatabaseChange,
} from '@sectional/cluster'
import { formatRange } from '@sectional/core'
import { noOrigin, securityDetails, type Audit, type AuditEvent } from '@sectional/http'

type Details = AuditEvent['details']

/** Returns a function that ends the recording. */
export function auditClusterChanges(
  control: Pick<ControlPlane, 'state' | 'onChange'>, audit: Audit,
): () => Promise<void> {
  let before = control.state()
  const unsubscribe = control.onChange(state => {
    if (before !== null && before.clusterId === state.clusterId) recordChanges(before, state, audit)
    before = state
  })
  return async () => { unsubscribe() }
}

export function auditUserDatabase(change: UserDatabaseChange, audit: Audit): void {
  const { kind, database } = change
  switch (kind) {
    case 'created': {
      const details = { database, q: change.q, n: change.n, partitioned: false }
      return audit.record({ ...noOrigin, event: 'database_created', details })
    }
    case 'deleted':
      return audit.record({ ...noOrigin, event: 'database_deleted', details: { database, outcome: change.outcome } })
    case 'secured': {
      const details = securityDetails(database, change.security)
      return audit.record({ ...noOrigin, event: 'security_changed', details })
    }
  }
}

function recordChanges(before: ClusterState, after: ClusterState, audit: Audit): void {
  const record = (event: AuditEvent['event'], details: Details): void => audit.record({ ...noOrigin, event, details })
  if (before.nodes !== after.nodes) {
    for (const { name, address, zone } of Object.values(after.nodes)) {
      const known = before.nodes[name]
      if (known === undefined) record('member_added', { member: name, address, zone })
      else if (known.address !== address || known.zone !== zone) {
        record('member_changed', { member: name, address, zone })
      }
    }
    for (const name of Object.keys(before.nodes)) {
      if (after.nodes[name] === undefined) record('member_removed', { member: name })
    }
  }
  for (const { before: old, after: now } of DatabaseMap.changed(before.databases, after.databases)) {
    if (old === undefined || now === undefined || old.incarnation !== now.incarnation) continue
    const [lost, added] = [missingReplicas(now, old), missingReplicas(old, now)]
    if (lost.length + added.length > 0) record('replicas_changed', { database: now.name, removed: lost, added })
  }
}

/** Returns the replicas that `to` has and `from` lacks, as `range node`; with `(filling)` while they are filled. */
function missingReplicas(from: DatabaseRecord, to: DatabaseRecord): readonly string[] {
  if (from.shards === to.shards) return []
  const known = new Set(replicasOf(from))
  return replicasOf(to).filter(replica => !known.has(replica))
}

function replicasOf({ shards }: DatabaseRecord): readonly string[] {
  return shards.flatMap(({ range, replicas }) => replicas.map(({ node, filling }) =>
    `${formatRange(range)} ${node}${filling ? ' (filling)' : ''}`))
}
