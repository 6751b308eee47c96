/**
 * Proxy authentication: a proxy in front of the node authenticates clients, and names the user and the roles in headers
 * (docs/reference/authentication.md#proxy). The proxy must remove these headers from the requests of its clients.
 */
import { createHmac, hash, timingSafeEqual } from 'node:crypto'
import { ApiError } from '@sectional/core'
import type { Log, Random } from '@sectional/runtime'
import type { HttpOptions } from '../settings/http-options.ts'
import { BoundedMap } from './bounded-map.ts'
import { signatureDigests } from './session-cookie.ts'
import { listedRoles, tokenUser, type User } from '../request/user.ts'

export interface ProxyAuthenticationParts {
  readonly options: Pick<
    HttpOptions, 'proxyUsesSecret' | 'proxyUserHeader' | 'proxyRolesHeader' | 'proxyTokenHeader' | 'hashAlgorithms'
    | 'credentialsMax'
  >
  readonly random: Random
  /** The valid secrets: `chttpd_auth/secret` and, after a change, the previous one. */
  readonly secrets: { valid(): readonly string[] }
}

const keyBytes = 32

/** What a token was verified with. A token is valid only while both are those that are valid now. */
interface Verified {
  readonly secret: string
  /** The option at that time; a change makes another object. */
  readonly hashAlgorithms: readonly string[]
}

export class ProxyAuthentication {
  readonly #parts: ProxyAuthenticationParts
  readonly #key: string
  /** Verified tokens with their names, under a keyed hash, which costs a third of an HMAC. */
  readonly #verified: BoundedMap<string, Verified>

  constructor(parts: ProxyAuthenticationParts) {
    this.#parts = parts
    this.#key = Buffer.from(parts.random.bytes(keyBytes)).toString('hex')
    this.#verified = new BoundedMap(parts.options.credentialsMax)
  }

  /**
   * Returns the user whom the headers name; null when they name none, or when the token is needed and wrong.
   * @throws ApiError `bad_request` when the headers are not UTF-8
   */
  find(headers: Readonly<Record<string, string | undefined>>): User | null {
    const { options } = this.#parts
    const name = decoded(headers[options.proxyUserHeader])
    if (name === '') return null
    if (options.proxyUsesSecret && !this.#isSigned(name, headers[options.proxyTokenHeader])) return null
    return tokenUser(name, listedRoles(decoded(headers[options.proxyRolesHeader])), 'proxy')
  }

  #isSigned(name: string, token: string | undefined): boolean {
    if (token === undefined) return false
    const { options: { hashAlgorithms }, secrets } = this.#parts
    const valid = secrets.valid()
    // The length separates the two texts, which clients choose.
    const fingerprint = hash('sha256', `${this.#key}${token.length}:${token}${name}`, 'base64')
    const known = this.#verified.get(fingerprint)
    if (known !== undefined && known.hashAlgorithms === hashAlgorithms && valid.includes(known.secret)) return true
    const given = Buffer.from(token, 'latin1')
    const digests = signatureDigests(hashAlgorithms)
    const secret = valid.find(candidate => digests.some(digest => {
      const expected = Buffer.from(createHmac(digest, candidate).update(name).digest('hex'), 'latin1')
      return expected.length === given.length && timingSafeEqual(expected, given)
    }))
    if (secret !== undefined) this.#verified.set(fingerprint, { secret, hashAlgorithms })
    return secret !== undefined
  }
}

/** Logs a warning when clients become able to name themselves any user, because no token is needed. */
export class UnsignedProxyWarning {
  readonly #options: Pick<HttpOptions, 'authenticationHandlers' | 'proxyUsesSecret'>
  readonly #log: Log
  #isGiven = false

  constructor(options: Pick<HttpOptions, 'authenticationHandlers' | 'proxyUsesSecret'>, log: Log) {
    this.#options = options
    this.#log = log
    this.check()
  }

  /** Call this when the configuration has changed. */
  check(): void {
    const isDue = this.#options.authenticationHandlers.includes('proxy') && !this.#options.proxyUsesSecret
    if (isDue && !this.#isGiven) {
      this.#log.warn({}, 'proxy authentication is enabled without chttpd_auth/proxy_use_secret: every client that '
        + 'reaches this node directly can be any user, also an administrator')
    }
    this.#isGiven = isDue
  }
}

const ascii = /^[\x20-\x7e]*$/

/** Decodes a header, of which each character is a byte, as UTF-8. Returns an empty text for an absent header. */
function decoded(header: string | undefined): string {
  if (header === undefined) return ''
  // Nearly all names are ASCII. A decoder would cost as much as the signature.
  if (ascii.test(header)) return header
  try {
    // A byte order mark is part of a name, which is that of somebody else without it.
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.from(header, 'latin1'))
  } catch {
    throw new ApiError('bad_request', 'The headers of proxy authentication must be UTF-8.')
  }
}
