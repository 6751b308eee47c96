/**
 * The rules for new passwords (`chttpd_auth/password_regexp`). The option has the form of CouchDB, which is an Erlang
 * term: a list of `"expression"`, `{"expression"}` and `{"expression", "reason"}`.
 */
import { ApiError, type TestInTime } from '@sectional/core'

interface Rule { readonly expression: RegExp; readonly reason: string }

/** Longest password to which rules are applied, so that a slow expression has little to work on. */
const checkedLengthMax = 512
/** Longest time of testing one rule, in milliseconds. Anybody may choose the password, where anybody may register. */
const testMsMax = 200
const refusal = 'Password does not conform to requirements.'

export class PasswordRules {
  readonly #machine: { readonly testInTime: TestInTime }
  #text = '[]'
  /** The rules of the text; null: it has another form. */
  #rules: readonly Rule[] | null = []

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

const string = '"(?:[^"\\\\]|\\\\.)*"'
const item = `(?:\\{\\s*(${string})\\s*(?:,\\s*(${string})\\s*)?\\}|(${string}))`
const listForm = new RegExp(`^\\[\\s*(?:${item}\\s*(?:,\\s*${item}\\s*)*)?\\]$`, 's')

function parseRules(text: string): readonly Rule[] | null {
  const given = text.trim()
  if (given === '') return []
  if (!listForm.test(given)) return null
  const rules = [...given.matchAll(new RegExp(item, 'gs'))].map(([, inTuple, reason, plain]) => {
    const expression = compile(unquote(inTuple ?? plain!))
    return expression === null ? null : { expression, reason: reason === undefined ? '' : unquote(reason) }
  })
  return rules.every(rule => rule !== null) ? rules : null
}

/** Returns the text of a string literal. A backslash stands before quotes and backslashes; others are kept. */
function unquote(literal: string): string {
  return literal.slice(1, -1).replace(/\\(["\\])/g, '$1')
}

/** Returns null for a text that is no regular expression. */
function compile(expression: string): RegExp | null {
  for (const flags of ['u', '']) {
    try {
      return new RegExp(expression, flags)
    } catch {
      // An expression that is not valid with the flag u may be valid without it.
    }
  }
  return null
}
