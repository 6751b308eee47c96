/** Examines again who the user of a long request is, whose credentials were checked when it began. */
import { ApiError } from '@sectional/core'
import type { User } from '../request/user.ts'
import type { Accounts } from './accounts.ts'
import type { TokenAuthentication } from './token-authentication.ts'

export interface PresentUsersParts {
  readonly accounts: Pick<Accounts, 'open'>
  readonly tokens: Pick<TokenAuthentication, 'find'>
}

export class PresentUsers {
  readonly #parts: PresentUsersParts

  constructor(parts: PresentUsersParts) {
    this.#parts = parts
  }

  /**
   * Returns the user with the present roles; null when the account was removed, has another password or conflicts, or
   * when the token is not valid any more. Users whom a proxy names stay as they are. A session does not end here with
   * its cookie, which the request cannot renew.
   *
   * @param authorization the header of the request
   * @throws Error when it cannot be found out now
   */
  async find(user: User, authorization: string | undefined): Promise<User | null> {
    if (user.handler === 'jwt') return this.#ofToken(authorization)
    if (user.name === null || user.salt === undefined) return user
    const account = await this.#parts.accounts.open(user.name)
    return account === null || account.isConflicted || account.user.salt !== user.salt ? null : account.user
  }

  async #ofToken(authorization: string | undefined): Promise<User | null> {
    try {
      return await this.#parts.tokens.find(authorization)
    } catch (error) {
      // The keys of the issuer cannot be downloaded.
      if (!(error instanceof ApiError) || error.status >= 500) throw error
      return null
    }
  }
}
