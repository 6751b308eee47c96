/** The existence of the database of users (docs/decisions/0018-users-database.md). */
import { ApiError } from '@sectional/core'
import { usersDatabase, type DatabaseRecord } from '@sectional/cluster'
import type { AuditOrigin } from '../audit/audit.ts'
import type { User } from '../request/user.ts'
import type { Services } from '../services/services.ts'

/** A setting of the cluster. It is set when an administrator deletes the database. */
const absentSection = 'users'
const absentKey = 'deleted'

/**
 * Creates the database of users when a server administrator writes to it for the first time. A database that was
 * deleted is not created again in this way.
 *
 * @returns undefined when the database is not created
 */
export async function createUsersDatabase(
  name: string, origin: AuditOrigin, user: User, { audit, control, options }: Services,
): Promise<DatabaseRecord | undefined> {
  const settings = control.state()?.settings
  if (name !== usersDatabase || !user.admin || settings?.[`${absentSection}/${absentKey}`] !== undefined) {
    return undefined
  }
  try {
    const { shardsPerDatabase: q, replicasPerShard: n } = options
    const created = await control.createDatabase(name, { q, n, partitioned: false })
    audit.record({ ...origin, event: 'database_created', details: { database: name, q, n, partitioned: false } })
    return created
  } catch (error) {
    // Another request has created it, maybe on another node, so that this node does not know it yet.
    if (error instanceof ApiError && error.error === 'file_exists') return control.confirmAbsent(name)
    throw error
  }
}

/** Call this before an administrator deletes the database. */
export async function keepUsersDatabaseAbsent({ control }: Services): Promise<void> {
  await control.setSetting(absentSection, absentKey, 'true')
}
