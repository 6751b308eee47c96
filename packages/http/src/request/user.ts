/** The user who makes a request. */
export interface User {
  /** Name of the user; null when anonymous. */
  readonly name: string | null
  readonly roles: readonly string[]
  /** True for a server administrator, who has the role `_admin`. */
  readonly admin: boolean
  /** Name of the authentication handler that identified the user, as `/_session` shows it. */
  readonly handler?: 'default' | 'cookie' | 'proxy' | 'jwt'
  /** The salt of the password, which changes with it. Absent without a password. */
  readonly salt?: string
}

export const anonymous: User = Object.freeze({ name: null, roles: Object.freeze([]), admin: false })

/**
 * Returns the user whom a token or a proxy names. The role `_admin` makes a server administrator.
 * @param name not empty
 */
export function tokenUser(name: string, roles: readonly string[], handler: 'proxy' | 'jwt'): User {
  return { name, roles, admin: roles.includes('_admin'), handler }
}

const blanks = ' \t\n\v\f\r'

/**
 * Returns the roles of a list with commas, without empty ones at its end. Only blanks of ASCII around a role are not
 * part of it: whoever decides about roles elsewhere may take one that begins with another kind of blank for another
 * role.
 */
export function listedRoles(list: string): readonly string[] {
  const roles = list.split(',').map(withoutBlanks)
  return roles.slice(0, roles.findLastIndex(role => role !== '') + 1)
}

function withoutBlanks(text: string): string {
  let [begin, end] = [0, text.length]
  while (begin < end && blanks.includes(text[begin]!)) begin++
  while (begin < end && blanks.includes(text[end - 1]!)) end--
  return text.slice(begin, end)
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
