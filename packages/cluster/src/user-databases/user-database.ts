/** Names and `_security` of the databases of users (docs/reference/users.md#a-database-for-each-user). */
import { isJsonObject } from '@sectional/core'
import type { DatabaseSecurity } from '../control/cluster-state.ts'
import { userIdPrefix } from '../validation/user-document-rules.ts'

const lists = ['admins', 'members'] as const

/** Returns the name of the user whose document has the id; null for the ids of other documents. */
export function userOf(documentId: string): string | null {
  return documentId.startsWith(userIdPrefix) && documentId.length > userIdPrefix.length
    ? documentId.slice(userIdPrefix.length)
    : null
}

export function userDatabaseName(prefix: string, user: string): string {
  return prefix + Buffer.from(user, 'utf8').toString('hex')
}

/** Returns the security object with the user as administrator and member; the same object if nothing is missing. */
export function withUser(security: DatabaseSecurity, user: string): DatabaseSecurity {
  return withNames(security, names => names.includes(user) ? names : [...names, user])
}

/** Returns the security object without the user; the same object if it does not name the user. */
export function withoutUser(security: DatabaseSecurity, user: string): DatabaseSecurity {
  return withNames(security, names => names.includes(user) ? names.filter(name => name !== user) : names)
}

function withNames(
  security: DatabaseSecurity, change: (names: readonly unknown[]) => readonly unknown[],
): DatabaseSecurity {
  return lists.reduce((changed, list) => {
    const people = isJsonObject(changed[list]) ? changed[list] : {}
    const names: readonly unknown[] = Array.isArray(people['names']) ? people['names'] : []
    const after = change(names)
    return after === names ? changed : { ...changed, [list]: { ...people, names: after } }
  }, security)
}
