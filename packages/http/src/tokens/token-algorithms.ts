/**
 * The algorithms of signed tokens (RFC 7518, RFC 8037) and the kinds of keys that they use. A key is looked up by its
 * family, so the public RSA key of a signature is never used as the secret of an HMAC.
 */
export const keyFamilies = ['hmac', 'rsa', 'ec', 'eddsa'] as const
export type KeyFamily = typeof keyFamilies[number]

const families: Readonly<Record<string, KeyFamily>> = {
  HS256: 'hmac', HS384: 'hmac', HS512: 'hmac',
  RS256: 'rsa', RS384: 'rsa', RS512: 'rsa', PS256: 'rsa', PS384: 'rsa', PS512: 'rsa',
  ES256: 'ec', ES384: 'ec', ES512: 'ec',
  EdDSA: 'eddsa', Ed25519: 'eddsa',
}

/** Returns undefined for an unknown algorithm. */
export function familyOf(algorithm: string): KeyFamily | undefined {
  return Object.hasOwn(families, algorithm) ? families[algorithm] : undefined
}
