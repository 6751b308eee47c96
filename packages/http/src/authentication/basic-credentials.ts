/** Parses credentials of the Basic authentication scheme (RFC 7617) in the same way as CouchDB. */
import { ApiError } from '@sectional/core'

export interface BasicCredentials { readonly name: string; readonly password: string }

const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/
const scheme = /^basic\s+/i
/** Neither Basic credentials (RFC 7617) nor the value of the session cookie can have such names. */
const unusableName = /:|\p{Cc}|\p{Cs}/u

/**
 * Returns null when the header has another scheme, or credentials that mean "logged out" (`_:_`, or no colon).
 * @throws ApiError `bad_request` when the value is not Base64
 */
export function parseBasicCredentials(authorization: string): BasicCredentials | null {
  const prefix = scheme.exec(authorization)
  if (prefix === null) return null
  const encoded = authorization.slice(prefix[0].length).trim()
  if (encoded === '') return null
  if (!base64.test(encoded)) throw new ApiError('bad_request', 'Authorization header has invalid base64 value')
  const text = Buffer.from(encoded, 'base64').toString('utf8')
  const colon = text.indexOf(':')
  if (colon < 0 || text === '_:_') return null
  return { name: text.slice(0, colon), password: text.slice(colon + 1) }
}

/**
 * Checks the name of an administrator.
 * @throws Error when nobody could log in with it
 */
export function checkCredentialName(name: string): void {
  if (name !== '' && !unusableName.test(name)) return
  throw new Error('a name must not be empty, nor have a colon or a control character: Basic credentials and session '
    + 'cookies end the name at the first colon, so nobody could log in')
}
