/**
 * Downloads the public keys of an issuer: a JSON Web Key Set (RFC 7517). Its URL is configured, or the issuer publishes
 * it by OpenID Connect Discovery 1.0. Only https URLs of the configured hosts are requested, and redirects are refused.
 */
import { isJsonObject } from '@sectional/core'
import type { HttpClient } from '@sectional/runtime'
import type { JSONWebKeySet } from 'jose'

/** Where keys come from. */
export interface KeySource {
  /** URL of the key set; empty: found by discovery. */
  readonly keySetUrl: string
  /** Empty when `keySetUrl` is set and tokens may have any issuer. */
  readonly issuer: string
}

const limits = { timeoutMs: 5_000, bytesMax: 256 * 1024 }
const keysMax = 100
const publicKinds = new Set(['RSA', 'EC', 'OKP'])

/** @throws Error whose message says why there are no keys */
export async function downloadKeySet(client: HttpClient, { keySetUrl, issuer }: KeySource): Promise<JSONWebKeySet> {
  const url = keySetUrl === '' ? await discover(client, issuer) : keySetUrl
  const set = await getJson(client, url)
  const { keys } = set
  if (!Array.isArray(keys)) throw new Error(`${url}: this is no key set`)
  if (keys.length > keysMax) throw new Error(`${url}: the set has more than ${keysMax} keys`)
  const usable = keys.filter(isPublicKey)
  if (usable.length === 0) throw new Error(`${url}: the set has no public keys`)
  return { keys: usable } as unknown as JSONWebKeySet
}

/** Returns the URL of the keys, which must have the origin of the issuer. */
async function discover(client: HttpClient, issuer: string): Promise<string> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  const { issuer: named, jwks_uri: keySetUrl } = await getJson(client, url)
  if (named !== issuer) throw new Error(`${url}: this is the configuration of another issuer`)
  if (typeof keySetUrl !== 'string' || URL.parse(keySetUrl)?.origin !== new URL(issuer).origin) {
    throw new Error(`${url}: jwks_uri is not on the host of the issuer; set jwt_auth/jwks_url to the right URL`)
  }
  return keySetUrl
}

async function getJson(client: HttpClient, url: string): Promise<Record<string, unknown>> {
  const { status, body } = await client.get(url, limits)
    .catch((error: unknown) => { throw new Error(`${url}: ${(error as Error).message}`, { cause: error }) })
  if (status !== 200) throw new Error(`${url}: status ${status}`)
  const value = jsonOf(body)
  if (!isJsonObject(value)) throw new Error(`${url}: the answer is no JSON object`)
  return value
}

function jsonOf(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    return undefined
  }
}

/** Leaves out secrets, which must not be in a public set, and keys of unknown kinds. */
function isPublicKey(key: unknown): boolean {
  return isJsonObject(key) && typeof key['kty'] === 'string' && publicKinds.has(key['kty']) && key['d'] === undefined
}
