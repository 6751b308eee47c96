/**
 * The value of the session cookie, which is compatible with CouchDB's (docs/reference/security.md#post-_session). It is
 * the base64url form of `{user}:{HEX_TIME}:{HMAC}`. The HMAC is raw bytes; its key is the secret followed by the user's
 * salt. A new password has a new salt and therefore ends all sessions of the user. Programs that know the secret can
 * create cookies.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { ApiError, formatHttpTime } from '@sectional/core'
import type { CrossOriginOptions } from '../request/cross-origin-hosts.ts'
import type { DigestName } from '../settings/authentication-options.ts'
import type { HttpOptions } from '../settings/http-options.ts'
import { sameSiteOf } from './same-site.ts'

export const sessionCookieName = 'AuthSession'
const separator = ':'.charCodeAt(0)
/** The alphabet of base64url, and that of Base64. */
const base64 = /^[A-Za-z0-9_+/-]+={0,2}$/
const hexTime = /^[0-9A-Fa-f]{1,12}$/
const digestNames: Readonly<Record<DigestName, string>> = {
  sha: 'sha1', sha224: 'sha224', sha256: 'sha256', sha384: 'sha384', sha512: 'sha512',
}

export interface SessionCookie {
  readonly name: string
  /** Seconds since 1970 at which the session was created or renewed. A text that is no time has long passed. */
  readonly time: number
  /** The bytes that the signature covers. */
  readonly message: Uint8Array
  readonly signature: Uint8Array
}

/** Returns the value of the session cookie in a Cookie header, or null when it is absent or empty. */
export function findSessionCookie(header: string | undefined): string | null {
  if (header === undefined || !header.includes(sessionCookieName)) return null
  for (const part of header.split(';')) {
    const equals = part.indexOf('=')
    if (equals < 0 || part.slice(0, equals).trim() !== sessionCookieName) continue
    const value = part.slice(equals + 1).trim().replace(/^"(.*)"$/, '$1')
    return value === '' ? null : value
  }
  return null
}

/** Parses a cookie's value without checking its signature. @throws ApiError `bad_request` when it is malformed */
export function readSessionCookie(value: string): SessionCookie {
  if (!base64.test(value)) throw malformed()
  const bytes = Buffer.from(value, 'base64url')
  const first = bytes.indexOf(separator)
  const second = first < 0 ? -1 : bytes.indexOf(separator, first + 1)
  if (second < 0) throw malformed()
  const time = bytes.toString('latin1', first + 1, second)
  return {
    name: bytes.toString('utf8', 0, first), time: hexTime.test(time) ? Number.parseInt(time, 16) : -Infinity,
    message: bytes.subarray(0, second), signature: bytes.subarray(second + 1),
  }
}

function malformed(): ApiError {
  return new ApiError('bad_request', 'Malformed AuthSession cookie. Please clear your cookies.')
}

/** Returns the digests of `chttpd_auth/hash_algorithms`, as Node names them. The first one signs new cookies. */
export function signatureDigests(names: readonly DigestName[]): readonly string[] {
  return names.map(name => digestNames[name])
}

export function makeSessionCookie(name: string, timeSeconds: number, key: string, digest: string): string {
  const message = Buffer.from(`${name}:${Math.floor(timeSeconds).toString(16).toUpperCase()}`)
  return Buffer.concat([message, Buffer.from(':'), createHmac(digest, key).update(message).digest()])
    .toString('base64url')
}

export function isSignedBy({ message, signature }: SessionCookie, key: string, digest: string): boolean {
  const expected = createHmac(digest, key).update(message).digest()
  return expected.length === signature.length && timingSafeEqual(expected, signature)
}

/**
 * Returns the Set-Cookie header for a cookie's value.
 * @param value an empty value makes the browser delete the cookie
 * @param encrypted whether the client is connected to this listener with TLS
 * @param crossOrigin the options of the host of the request
 */
export function sessionCookieHeader(
  value: string, options: HttpOptions, nowMs: number, encrypted: boolean, crossOrigin: CrossOriginOptions,
): string {
  const { sessionSeconds, cookieDomain } = options
  const sameSite = sameSiteOf(options, crossOrigin)
  return [
    `${sessionCookieName}=${value}`, 'Version=1',
    ...(options.persistentCookies
      ? [`Expires=${formatHttpTime(nowMs + sessionSeconds * 1000)}`, `Max-Age=${sessionSeconds}`]
      : []),
    ...(encrypted ? ['Secure'] : []),
    ...(cookieDomain === '' ? [] : [`Domain=${cookieDomain}`]),
    'Path=/', 'HttpOnly',
    ...(sameSite === undefined ? [] : [`SameSite=${sameSite}`]),
  ].join('; ')
}
