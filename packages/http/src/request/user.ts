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
