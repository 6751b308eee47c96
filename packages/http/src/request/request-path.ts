/** Splits a request target. The path is split on `/` before decoding, so that `%2F` stays inside a segment. */
import { ApiError } from '@sectional/core'

const plus = /\+/g
const wellFormedEscapes = /^(?:[^%]|%[0-9A-Fa-f]{2})*$/

export interface Target { readonly path: string; readonly search: string }

/**
 * Returns whether a target in absolute form names another host than the Host header, which RFC 9112 (3.2.2) forbids. A
 * proxy may have chosen by the other one what the client may reach.
 */
export function namesTwoHosts(target: string, host: string | undefined): boolean {
  const [, authority] = /^[^/]*:\/\/([^/?]*)/.exec(target) ?? []
  if (authority === undefined || host === undefined) return false
  return authority.slice(authority.lastIndexOf('@') + 1).toLowerCase() !== host.toLowerCase()
}

/** Path and query of a request target in origin form (`/path?query`) or absolute form (`http://host/path`). */
export function splitTarget(target: string): Target {
  let text = target
  if (!text.startsWith('/')) {
    const scheme = text.indexOf('://')
    const slash = scheme < 0 ? -1 : text.indexOf('/', scheme + 3)
    text = slash < 0 ? '/' : text.slice(slash)
  }
  const mark = text.indexOf('?')
  return mark < 0 ? { path: text, search: '' } : { path: text.slice(0, mark), search: text.slice(mark + 1) }
}

/**
 * Returns the decoded segments without empty ones (from doubled and trailing slashes).
 * @throws ApiError `invalid_url_encoding` for an escape that cannot be decoded
 */
export function splitPath(path: string, plusIsSpace: boolean): string[] {
  const segments: string[] = []
  let begin = 1
  while (begin <= path.length) {
    let end = path.indexOf('/', begin)
    if (end < 0) end = path.length
    if (end > begin) {
      segments.push(decodeText(path.slice(begin, end), plusIsSpace, namesAttachment(segments) ? refuseName : refuseId))
    }
    begin = end + 1
  }
  return segments
}

/** Returns whether the segments contain a document id, so that the next segment belongs to an attachment's name. */
function namesAttachment([, id, ...rest]: readonly string[]): boolean {
  return id !== undefined && (rest.length > 0 || (id !== '_design' && id !== '_local'))
}

function refuseName(cause: unknown): never {
  throw new ApiError('bad_request', 'Attachment name is not UTF-8 encoded', { cause })
}

function refuseId(cause: unknown): never {
  throw new ApiError('illegal_docid', 'Document id must be valid UTF-8', { cause })
}

/**
 * Percent-decodes one segment or one part of a query.
 * @param otherwise returns the result, or throws, when the bytes are not UTF-8; the default throws `illegal_docid`
 * @throws ApiError `invalid_url_encoding`
 */
export function decodeText(
  raw: string, plusIsSpace: boolean, otherwise: (cause: unknown) => string = refuseId,
): string {
  const text = plusIsSpace && raw.includes('+') ? raw.replace(plus, ' ') : raw
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch (error) {
    if (wellFormedEscapes.test(text)) return otherwise(error)
    throw new ApiError('invalid_url_encoding', undefined, { cause: error })
  }
}

/**
 * Encodes a path segment for a Location header as CouchDB does: `:` is kept; quotes, parentheses and the tilde are
 * encoded.
 */
export function encodeSegment(text: string): string {
  return encodeURIComponent(text)
    .replace(/[!'()*~]|%3A/g, match => match === '%3A' ? ':' : `%${match.charCodeAt(0).toString(16).toUpperCase()}`)
}
