export type SelectorErrorCode =
  | 'invalid_selector'
  | 'invalid_selector_json'
  | 'invalid_operator'
  | 'not_supported'
  | 'bad_arg'
  | 'invalid_field_name'

/**
 * A selector is invalid or takes too long to evaluate. `_find` answers with status 400, `code` and the message
 * (https://docs.couchdb.org/en/stable/api/database/find.html).
 */
export class SelectorError extends Error {
  override readonly name = 'SelectorError'
  readonly code: SelectorErrorCode

  constructor(code: SelectorErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.code = code
  }
}
