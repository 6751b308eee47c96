/** The existence of the database of users (docs/decisions/0018-users-database.md). */
import { ApiError } from '@sectional/core'
import { usersDatabase, type DatabaseRecord } from '@sectional/cluster'
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
  name: string, user: User, { control, options }: Services,
): Promise<DatabaseRecord | undefined> {
  const settings = control.state()?.settings
  if (name !== usersDatabase || !user.admin || settings?.[`${absentSection}/${absentKey}`] !== undefined) {
    return undefined
  }
  try {
    const { shardsPerDatabase: q, replicasPerShard: n } = options
    return await control.createDatabase(name, { q, n, partitioned: false })
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
