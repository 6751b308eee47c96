/** Who makes a request. */
export interface User {
  /** null: anonymous. */
  readonly name: string | null
  readonly roles: readonly string[]
  /** Server administrator: has the role `_admin`. */
  readonly admin: boolean
  /** Name of the handler that identified the user, as `/_session` shows it. */
  readonly handler?: 'default' | 'cookie' | 'proxy' | 'jwt'
}

export const anonymous: User = Object.freeze({ name: null, roles: Object.freeze([]), admin: false })
