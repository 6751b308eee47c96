/**
 * Reads the rules for new passwords (`chttpd_auth/password_regexp`). They have the form of CouchDB, which is an Erlang
 * term: a list of `"expression"`, `{"expression"}` and `{"expression", "reason"}`.
 */

export interface PasswordRule { readonly expression: RegExp; readonly reason: string }

const string = '"(?:[^"\\\\]|\\\\.)*"'
const item = `(?:\\{\\s*(${string})\\s*(?:,\\s*(${string})\\s*)?\\}|(${string}))`
const listForm = new RegExp(`^\\[\\s*(?:${item}\\s*(?:,\\s*${item}\\s*)*)?\\]$`, 's')

/** CouchDB accepts any text. One of words alone is no mistake in a list of rules: it prevents new passwords. */
const words = /^[\w\s]*$/

/** @throws Error that says what is wrong */
export function parsePasswordRules(text: string): readonly PasswordRule[] {
  const given = text.trim()
  if (given === '') return []
  if (!listForm.test(given)) {
    throw new Error('only a list like [{".{10,}", "Ten characters at least."}, "[A-Z]"] is allowed')
  }
  return [...given.matchAll(new RegExp(item, 'gs'))].map(([, inTuple, reason, plain]) => ({
    expression: compile(inTuple ?? plain!), reason: reason === undefined ? '' : unquote(reason),
  }))
}

/** Returns what is wrong with a text that was probably meant as a list of rules; null for every other text. */
export function passwordRulesDefect(text: string): string | null {
  if (words.test(text)) return null
  try {
    parsePasswordRules(text)
    return null
  } catch (error) {
    return (error as Error).message
  }
}

/** Returns the text of a string literal. A backslash stands before quotes and backslashes; others are kept. */
function unquote(literal: string): string {
  return literal.slice(1, -1).replace(/\\(["\\])/g, '$1')
}

/** @throws Error for a text that is no regular expression */
function compile(literal: string): RegExp {
  for (const flags of ['u', '']) {
    try {
      return new RegExp(unquote(literal), flags)
    } catch {
      // An expression that is not valid with the flag u may be valid without it.
    }
  }
  throw new Error(`${literal} is no regular expression`)
}
