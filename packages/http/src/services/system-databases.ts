/** The creation of the system databases that a complete setup has. */
import { ApiError } from '@sectional/core'
import type { AuditOrigin } from '../audit/audit.ts'
import type { Services } from './services.ts'

export type SetupServices = Pick<Services, 'audit' | 'control' | 'options'>

export const systemDatabases: readonly string[] = ['_users', '_replicator']

/** Returns whether the cluster has other nodes. */
export function isCluster({ control }: Pick<Services, 'control'>): boolean {
  return Object.keys(control.state()?.nodes ?? {}).length > 1
}

/** Creates those of the databases that do not exist. */
export async function createDatabases(
  names: readonly string[], origin: AuditOrigin, { audit, control, options }: SetupServices,
): Promise<void> {
  for (const name of names) {
    if (control.state()?.databases.has(name)) continue
    try {
      const { shardsPerDatabase: q, replicasPerShard: n } = options
      await control.createDatabase(name, { q, n, partitioned: false })
      audit.record({ ...origin, event: 'database_created', details: { database: name, q, n, partitioned: false } })
    } catch (error) {
      if (!(error instanceof ApiError) || error.error !== 'file_exists') throw error
    }
  }
}
