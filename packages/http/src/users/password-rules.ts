/** Checks new passwords by the rules for them (`chttpd_auth/password_regexp`). */
import { ApiError, type TestInTime } from '@sectional/core'
import { parsePasswordRules, type PasswordRule } from '../settings/password-rule-list.ts'

/** Longest password to which rules are applied, so that a slow expression has little to work on. */
const checkedLengthMax = 512
/** Longest time of testing one rule, in milliseconds. Anybody may choose the password, where anybody may register. */
const testMsMax = 200
const refusal = 'Password does not conform to requirements.'

export class PasswordRules {
  readonly #machine: { readonly testInTime: TestInTime }
  #text = '[]'
  /** The rules of the text; null: it has another form. */
  #rules: readonly PasswordRule[] | null = []

  constructor(machine: { readonly testInTime: TestInTime }) {
    this.#machine = machine
  }

  /**
   * Checks a password against every rule.
   * @param text value of the option
   * @throws ApiError `bad_request` with the reason of the first rule that does not match, or whose test takes too long;
   * `forbidden` when the option has another form
   */
  check(password: string, text: string): void {
    if (text !== this.#text) {
      this.#rules = parseRules(text)
      this.#text = text
    }
    if (this.#rules === null) throw new ApiError('forbidden', 'Server cannot hash passwords at this time.')
    if (this.#rules.length > 0 && password.length > checkedLengthMax) {
      throw new ApiError('bad_request', `${refusal} At most ${checkedLengthMax} characters are allowed.`)
    }
    for (const { expression, reason } of this.#rules) {
      const fits = this.#machine.testInTime(expression, password, testMsMax)
      const given = fits === null ? `The check took more than ${testMsMax} ms.` : reason
      if (fits !== true) throw new ApiError('bad_request', `${refusal} ${given}`.trim())
    }
  }
}

function parseRules(text: string): readonly PasswordRule[] | null {
  try {
    return parsePasswordRules(text)
  } catch {
    return null
  }
}
