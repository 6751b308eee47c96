/** Signs tokens for tests with node:crypto, also wrong ones. */
import { constants, createHmac, generateKeyPairSync, sign, type KeyObject } from 'node:crypto'

export interface KeyPair { readonly publicKey: KeyObject; readonly privateKey: KeyObject }

export const rsaPair: KeyPair = generateKeyPairSync('rsa', { modulusLength: 2048 })
export const otherRsaPair: KeyPair = generateKeyPairSync('rsa', { modulusLength: 2048 })
export const ecPairs: Readonly<Record<string, KeyPair>> = {
  ES256: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  ES384: generateKeyPairSync('ec', { namedCurve: 'P-384' }),
  ES512: generateKeyPairSync('ec', { namedCurve: 'P-521' }),
}
export const edwardsPair: KeyPair = generateKeyPairSync('ed25519')
export const secret = Buffer.from('a secret of thirty-two characters')

/** The public key as a value of `[jwt_keys]`. */
export function pemOf({ publicKey }: KeyPair): string {
  return publicKey.export({ type: 'spki', format: 'pem' }).toString().trim().replaceAll('\n', '\\n')
}

export function encode(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return Buffer.from(text).toString('base64url')
}

/** @param key the secret of an HMAC, or a private key */
export function signToken(header: object, claims: unknown, key: KeyObject | Uint8Array): string {
  const input = `${encode(header)}.${encode(claims)}`
  const { alg = 'HS256' } = header as { alg?: string }
  return `${input}.${signatureOf(input, alg, key).toString('base64url')}`
}

function signatureOf(input: string, algorithm: string, key: KeyObject | Uint8Array): Buffer {
  const bytes = Buffer.from(input)
  const digest = `sha${algorithm.slice(-3)}`
  switch (algorithm.slice(0, 2)) {
    case 'RS': return sign(digest, bytes, key as KeyObject)
    case 'PS': return sign(digest, bytes, {
      key: key as KeyObject, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST,
    })
    case 'ES': return sign(digest, bytes, { key: key as KeyObject, dsaEncoding: 'ieee-p1363' })
    case 'Ed': return sign(null, bytes, key as KeyObject)
    case 'HS': return createHmac(digest, key).update(bytes).digest()
    default: return createHmac('sha256', key).update(bytes).digest()
  }
}
