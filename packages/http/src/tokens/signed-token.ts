/** The compact form of a signed token: `HEADER.PAYLOAD.SIGNATURE`, each part in base64url (RFC 7515). */
import { isJsonObject } from '@sectional/core'
import { badToken } from './token-errors.ts'

/** The header of a token. Nothing in it can be trusted before the signature is verified. */
export interface TokenHeader {
  readonly algorithm: string
  /** Undefined: the token names no key. */
  readonly keyId: string | undefined
  /** Undefined: the token has no `typ`. */
  readonly type: unknown
}

/** A token whose signature is not verified yet. */
export interface SignedToken { readonly header: TokenHeader; readonly claims: Readonly<Record<string, unknown>> }

/** Longer tokens are refused before they are parsed. */
const tokenCharactersMax = 16 * 1024
const bearer = /^bearer +(.*)$/is
const base64url = /^[\w-]+$/

/** Returns the token in an Authorization header of the scheme Bearer, or null when there is none. */
export function bearerToken(authorization: string | undefined): string | null {
  const token = authorization === undefined ? undefined : bearer.exec(authorization)?.[1]!.trim()
  return token === undefined || token === '' ? null : token
}

/** @throws ApiError `bad_request` when the token is malformed or its algorithm is not allowed */
export function readToken(token: string, algorithms: readonly string[]): SignedToken {
  const [header, payload, signature, ...more] = token.length > tokenCharactersMax ? [] : token.split('.')
  if (signature === undefined || more.length > 0) throw badToken('Malformed token')
  return { header: readHeader(header!, algorithms), claims: readPart(payload!) }
}

function readHeader(part: string, algorithms: readonly string[]): TokenHeader {
  const header = readPart(part)
  const { alg: algorithm, kid: keyId, typ: type } = header
  if (algorithm === undefined) throw badToken('Missing alg header parameter')
  if (typeof algorithm !== 'string' || !algorithms.includes(algorithm)) throw badToken('Invalid alg header parameter')
  if (header['crit'] !== undefined) throw badToken('Invalid crit header parameter')
  if (keyId !== undefined && typeof keyId !== 'string') throw badToken('Invalid kid claim')
  return { algorithm, keyId, type }
}

function readPart(part: string): Readonly<Record<string, unknown>> {
  if (!base64url.test(part)) throw badToken('Malformed token')
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(part, 'base64url')))
  } catch {
    throw badToken('Malformed token')
  }
  if (!isJsonObject(value)) throw badToken('Not an object')
  return value
}
