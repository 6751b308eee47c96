/** The existence of the users database (docs/decisions/0018-users-database.md). */
import { ApiError } from '@sectional/core'
import { usersDatabase, type DatabaseRecord } from '@sectional/cluster'
import type { AuditOrigin } from '../audit/audit.ts'
import type { User } from '../request/user.ts'
import type { Services } from '../services/services.ts'
import { FutureUsers } from './future-users.ts'

/** A setting of the cluster. It is set when an administrator deletes the database. */
const absentSection = 'users'
const absentKey = 'deleted'

/**
 * Returns the users database that the first write of a server administrator creates. A database that was deleted is
 * not created again in this way.
 */
export function futureUsers(
  name: string, origin: AuditOrigin, user: User, services: Services,
): DatabaseRecord | undefined {
  const settings = services.control.state()?.settings
  if (name !== usersDatabase || !user.admin || settings?.[`${absentSection}/${absentKey}`] !== undefined) {
    return undefined
  }
  return new FutureUsers(() => createUsersDatabase(origin, services))
}

async function createUsersDatabase(
  origin: AuditOrigin, { audit, control, options }: Services,
): Promise<DatabaseRecord | undefined> {
  try {
    const { shardsPerDatabase: q, replicasPerShard: n } = options
    const created = await control.createDatabase(usersDatabase, { q, n, partitioned: false })
    audit.record({
      ...origin, event: 'database_created', details: { database: usersDatabase, q, n, partitioned: false },
    })
    return created
  } catch (error) {
    // Another request has created it, maybe on another node, so that this node does not know it yet.
    if (!(error instanceof ApiError) || error.error !== 'file_exists') throw error
    return control.state()?.databases.get(usersDatabase) ?? control.confirmAbsent(usersDatabase)
  }
}

/** Call this before an administrator deletes the database. */
export async function keepUsersDatabaseAbsent({ control }: Services): Promise<void> {
  await control.setSetting(absentSection, absentKey, 'true')
}
