/**
 * The keys of tokens in section `[jwt_keys]`: `{family}:{key id} = {key}`. A key `hmac` is Base64. The others are
 * public keys in PEM format in one line, with `\n` for each end of a line.
 */
import { createPublicKey, type KeyObject } from 'node:crypto'
import type { Configuration } from '../settings/configuration.ts'
import { keyFamilies, type KeyFamily } from './token-algorithms.ts'

export const tokenKeysSection = 'jwt_keys'
/** The key id of tokens that name none. */
const defaultKeyId = '_default'

/** A secret, or a public key. */
export type VerificationKey = Uint8Array | KeyObject

const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/
const publicForm = /^-----BEGIN (?:RSA )?PUBLIC KEY-----|^-----BEGIN CERTIFICATE-----/
const rsaBitsMin = 2048
const secretBytesMin = 16
const curves = new Set(['prime256v1', 'secp384r1', 'secp521r1'])

/**
 * @param name `{family}:{key id}`
 * @throws Error whose message says what is allowed, without the key
 */
export function parseTokenKey(name: string, text: string): VerificationKey {
  const family = keyFamilies.find(known => name.startsWith(`${known}:`) && name.length > known.length + 1)
  if (family === undefined) throw new Error(`the name must be ${keyFamilies.join(', ')}, a colon, and the id of a key`)
  if (family === 'hmac') {
    if (text === '' || !base64.test(text)) throw new Error('the key of an HMAC must be Base64')
    return Buffer.from(text, 'base64')
  }
  const pem = text.replaceAll('\\n', '\n').trim()
  if (!publicForm.test(pem)) throw new Error('the key must be a public key in PEM format, in one line with \\n')
  return checkFamily(publicKey(pem), family)
}

/**
 * Returns why the API refuses a key that files may have; null when it does not. Who has a token can try secrets as fast
 * as a machine computes an HMAC.
 */
export function tokenKeyDefect(name: string, text: string): string | null {
  const { length } = Buffer.from(text, 'base64')
  if (!name.startsWith('hmac:') || length >= secretBytesMin) return null
  return `it has ${length} byte${length === 1 ? '' : 's'}, and whoever guesses it can be any user. Use at least `
    + `${secretBytesMin}, for instance the output of: openssl rand -base64 32`
}

function publicKey(pem: string): KeyObject {
  try {
    return createPublicKey(pem)
  } catch {
    throw new Error('the public key cannot be read')
  }
}

function checkFamily(key: KeyObject, family: Exclude<KeyFamily, 'hmac'>): KeyObject {
  const { asymmetricKeyType: type, asymmetricKeyDetails: { modulusLength = 0, namedCurve = '' } = {} } = key
  switch (family) {
    case 'rsa':
      if (type !== 'rsa' || modulusLength < rsaBitsMin) {
        throw new Error(`only an RSA key of at least ${rsaBitsMin} bits is allowed`)
      }
      return key
    case 'ec':
      if (type !== 'ec' || !curves.has(namedCurve)) {
        throw new Error('only a key on the curve P-256, P-384 or P-521 is allowed')
      }
      return key
    case 'eddsa':
      if (type !== 'ed25519') throw new Error('only an Ed25519 key is allowed')
      return key
  }
}

/** Parses each key once. */
export class ConfiguredKeys {
  readonly #configuration: Pick<Configuration, 'get'>
  /** The parsed keys that were used. Its size is bounded by the number of keys that are configured. */
  readonly #parsed = new Map<string, { readonly text: string; readonly key: VerificationKey | null }>()

  constructor(configuration: Pick<Configuration, 'get'>) {
    this.#configuration = configuration
  }

  /** Returns null when the key is not configured, or cannot be read. */
  find(family: KeyFamily, keyId: string | undefined): VerificationKey | null {
    const name = `${family}:${keyId ?? defaultKeyId}`
    const text = this.#configuration.get(tokenKeysSection, name)
    if (text === undefined) {
      this.#parsed.delete(name)
      return null
    }
    const known = this.#parsed.get(name)
    if (known?.text === text) return known.key
    const key = keyOrNull(name, text)
    this.#parsed.set(name, { text, key })
    return key
  }
}

function keyOrNull(name: string, text: string): VerificationKey | null {
  try {
    return parseTokenKey(name, text)
  } catch {
    return null
  }
}
