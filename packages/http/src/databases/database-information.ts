/** Describes a database to clients. */
import { activeReplicas, majority, type DatabaseRecord, type OperationContext } from '@sectional/cluster'
import type { Services } from '../services/services.ts'

/** Version of the record format that CouchDB 3.5 reports. */
const diskFormatVersion = 8

/** The member `instance_start_time`. It never changes, as replicators require (docs/reference/databases.md#get-db). */
export const instanceStartTime = '0'

/** Returns the body of `GET /{db}`, which is also the `info` of a row of `_dbs_info`. */
export async function databaseInformation(
  database: DatabaseRecord, context: OperationContext, services: Pick<Services, 'coordinator'>,
): Promise<object> {
  const info = await services.coordinator.databaseInfo(database, context)
  const quorum = majority(replicaCount(database))
  return {
    instance_start_time: instanceStartTime,
    db_name: database.name,
    purge_seq: info.purgeSequence,
    update_seq: info.updateSequence,
    sizes: { file: info.sizes.file, external: info.sizes.external, active: info.sizes.active },
    props: database.partitioned ? { partitioned: true } : {},
    doc_del_count: info.deletedCount,
    doc_count: info.documentCount,
    disk_format_version: diskFormatVersion,
    compact_running: info.compactRunning,
    cluster: { q: database.shards.length, n: replicaCount(database), w: quorum, r: quorum },
  }
}

function replicaCount(database: DatabaseRecord): number {
  return database.shards.reduce((most, shard) => Math.max(most, activeReplicas(shard).length), 0)
}
