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

/** Longer tokens are refused before they are parsed. */
const tokenCharactersMax = 16 * 1024
const bearer = /^bearer +(.*)$/is
const compactForm = /^[\w-]+\.[\w-]+\.[\w-]*$/

/** Returns the token in an Authorization header of the scheme Bearer, or null when there is none. */
export function bearerToken(authorization: string | undefined): string | null {
  const token = authorization === undefined ? undefined : bearer.exec(authorization)?.[1]!.trim()
  return token === undefined || token === '' ? null : token
}

/** @throws ApiError `bad_request` when the token is malformed or its algorithm is not allowed */
export function readTokenHeader(token: string, algorithms: readonly string[]): TokenHeader {
  if (token.length > tokenCharactersMax || !compactForm.test(token)) throw badToken('Malformed token')
  const header = readTokenPart(Buffer.from(token.slice(0, token.indexOf('.')), 'base64url'))
  const { alg: algorithm, kid: keyId, typ: type } = header
  if (algorithm === undefined) throw badToken('Missing alg header parameter')
  if (typeof algorithm !== 'string' || !algorithms.includes(algorithm)) throw badToken('Invalid alg header parameter')
  if (header['crit'] !== undefined) throw badToken('Invalid crit header parameter')
  if (keyId !== undefined && typeof keyId !== 'string') throw badToken('Invalid kid claim')
  return { algorithm, keyId, type }
}

/** Parses a decoded part of a token. @throws ApiError `bad_request` */
export function readTokenPart(bytes: Uint8Array): Readonly<Record<string, unknown>> {
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    throw badToken('Malformed token')
  }
  if (!isJsonObject(value)) throw badToken('Not an object')
  return value
}
