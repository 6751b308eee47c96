/** The user who makes a request. */
export interface User {
  /** Name of the user; null when anonymous. */
  readonly name: string | null
  readonly roles: readonly string[]
  /** True for a server administrator, who has the role `_admin`. */
  readonly admin: boolean
  /** Name of the authentication handler that identified the user, as `/_session` shows it. */
  readonly handler?: 'default' | 'cookie' | 'proxy' | 'jwt'
}

export const anonymous: User = Object.freeze({ name: null, roles: Object.freeze([]), admin: false })

/**
 * Returns the user whom a token or a proxy names. The role `_admin` makes a server administrator.
 * @param name not empty
 */
export function tokenUser(name: string, roles: readonly string[], handler: 'proxy' | 'jwt'): User {
  return { name, roles, admin: roles.includes('_admin'), handler }
}

/** The user as functions of design documents see it (`userCtx`). */
export interface UserContext {
  /** Name of the database. */
  readonly db: string
  readonly name: string | null
  readonly roles: readonly string[]
}

export function userContext({ name, roles }: User, db: string): UserContext {
  return { db, name, roles }
}
