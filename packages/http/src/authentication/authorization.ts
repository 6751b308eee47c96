/** The rules of access (docs/reference/security.md#rights). The rule of a route is checked before its handler runs. */
import { ApiError, isJsonObject } from '@sectional/core'
import type { DatabaseRecord, DatabaseSecurity, WriteUser } from '@sectional/cluster'
import type { User } from '../request/user.ts'

export function requireServerAdmin(user: User): void {
  if (!user.admin) throw new ApiError('not_server_admin')
}

/** `_all_docs` and `_changes` of system databases, and what shows the same, are for server administrators. */
export function requireLister(user: User, databaseName: string): void {
  if (databaseName.startsWith('_')) requireServerAdmin(user)
}

export function requireMetricsReader(user: User): void {
  if (!user.admin && !user.roles.includes('_metrics')) {
    throw new ApiError('unauthorized', 'You are not a server admin or read-only metrics user')
  }
}

export function requireAuthenticated(user: User): void {
  if (user.name === null && !user.admin) throw new ApiError('unauthorized', 'You are not an authenticated user')
}

/**
 * Allows members, database administrators and server administrators; allows everybody when the database names no
 * members.
 */
export function requireMember(user: User, database: Pick<DatabaseRecord, 'security'>): void {
  if (mayRead(user, database)) return
  throw user.name === null
    ? new ApiError('unauthorized', 'You are not authorized to access this db.')
    : new ApiError('forbidden', 'You are not allowed to access this db.')
}

function mayRead(user: User, database: Pick<DatabaseRecord, 'security'>): boolean {
  return user.admin || isMember(user, database.security)
}

/** Whether the user may open a feed of the database that waits for changes. */
export function mayFollow(user: User, database: Pick<DatabaseRecord, 'name' | 'security'>): boolean {
  return mayRead(user, database) && (user.admin || !database.name.startsWith('_'))
}

/**
 * Allows database and server administrators. Handlers call it before they change a design document, the security object
 * or a limit. Others get 401 when anonymous and 403 when logged in.
 */
export function requireDatabaseAdmin(user: User, database: DatabaseRecord): void {
  if (isDatabaseAdmin(user, database)) return
  throw new ApiError(user.name === null ? 'unauthorized' : 'forbidden', 'You are not a db or server admin.')
}

/** Allows database and server administrators on maintenance paths. Other members get 401. */
export function requireMaintenanceAdmin(user: User, database: DatabaseRecord): void {
  requireMember(user, database)
  if (!isDatabaseAdmin(user, database)) throw new ApiError('unauthorized', 'You are not a server or db admin.')
}

export function isDatabaseAdmin(user: WriteUser, database: DatabaseRecord): boolean {
  return user.roles.includes('_admin') || isNamed(user, section(database.security, 'admins'))
}

function isMember(user: User, security: DatabaseSecurity): boolean {
  const members = section(security, 'members') ?? section(security, 'readers')
  if (texts(members, 'names').length === 0 && texts(members, 'roles').length === 0) return true
  return isNamed(user, members) || isNamed(user, section(security, 'admins'))
}

function isNamed(user: WriteUser, people: Record<string, unknown> | undefined): boolean {
  if (people === undefined) return false
  if (user.name !== null && texts(people, 'names').includes(user.name)) return true
  const roles = texts(people, 'roles')
  return user.roles.some(role => roles.includes(role))
}

function section(security: DatabaseSecurity, name: string): Record<string, unknown> | undefined {
  const value = security[name]
  return isJsonObject(value) ? value : undefined
}

function texts(people: Record<string, unknown> | undefined, key: string): readonly unknown[] {
  const value = people?.[key]
  return Array.isArray(value) ? value : []
}

/** @throws ApiError `bad_request` when names or roles are not arrays of strings */
export function checkSecurityShape(security: Record<string, unknown>): void {
  for (const key of ['admins', 'members', 'readers']) {
    const people = security[key]
    if (people === undefined || (key === 'readers' && security['members'] !== undefined)) continue
    if (!isJsonObject(people)) throw new ApiError('bad_request', 'admins or members must be a JSON list of strings')
    for (const list of ['names', 'roles']) {
      const value = people[list]
      if (value === undefined) continue
      if (!Array.isArray(value) || !value.every(item => typeof item === 'string')) {
        throw new ApiError('bad_request', `${list} must be a JSON list of strings`)
      }
    }
  }
}
