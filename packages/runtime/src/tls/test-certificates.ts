// Makes certificates for tests (X.509 in DER, RFC 5280), so that the repository contains no private key.
import { generateKeyPairSync, sign } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import type { TlsContext } from './tls-context.ts'

const tag = {
  boolean: 0x01, integer: 0x02, bits: 0x03, octets: 0x04, oid: 0x06, utf8: 0x0c, time: 0x18, sequence: 0x30, set: 0x31,
  version: 0xa0, extensions: 0xa3, hostName: 0x82, uri: 0x86, ipAddress: 0x87,
}
const oid = {
  ecdsaWithSha256: '2a8648ce3d040302', commonName: '550403', alternativeNames: '551d11', basicConstraints: '551d13',
  extendedKeyUsage: '551d25', serverAuth: '2b06010505070301', clientAuth: '2b06010505070302',
}

/** A key and a certificate, with the certificate of the authority that signed it. */
export type TestIdentity = TlsContext & { readonly ca: string }

/** What a certificate contains. Without names it is for the address 127.0.0.1. */
export interface CertificateContent {
  readonly hosts?: readonly string[]
  /** IPv4 addresses. */
  readonly addresses?: readonly string[]
  readonly uris?: readonly string[]
  /** The first and the last second of its validity, as YYYYMMDDhhmmss in UTC. */
  readonly notBefore?: string
  readonly notAfter?: string
  /** For which ends of connections the certificate is; without it, for all. */
  readonly usages?: readonly ('serverAuth' | 'clientAuth')[]
}

export interface TestAuthority {
  /** A certificate for 127.0.0.1. */
  readonly identity: TestIdentity
  /** Its own key and certificate, which is for 127.0.0.1, too. */
  readonly root: TlsContext
  /** Makes a new key with a certificate. */
  issue(content: CertificateContent): TestIdentity
  /** Makes an authority that this one has signed. Its certificate follows those that it issues. */
  intermediate(name: string): TestAuthority
}

function der(type: number, ...parts: Uint8Array[]): Buffer {
  const body = Buffer.concat(parts)
  const length = body.length < 0x80 ? [body.length]
    : body.length < 0x100 ? [0x81, body.length]
    : [0x82, body.length >> 8, body.length & 0xff]
  return Buffer.concat([Buffer.from([type, ...length]), body])
}

const sequence = (...parts: Uint8Array[]): Buffer => der(tag.sequence, ...parts)
const objectId = (hex: string): Buffer => der(tag.oid, Buffer.from(hex, 'hex'))
const yes = der(tag.boolean, Buffer.from([0xff]))
const distinguishedName = (name: string): Buffer =>
  sequence(der(tag.set, sequence(objectId(oid.commonName), der(tag.utf8, Buffer.from(name)))))

interface Signer { readonly name: string; readonly key: KeyObject }

/** What all certificates have. */
interface Outline {
  readonly subject: string
  readonly publicKey: KeyObject
  readonly issuer: Signer
  readonly serial: number
  readonly extensions: readonly Buffer[]
}

function certificate(
  { subject, publicKey, issuer, serial, extensions }: Outline, { notBefore, notAfter }: CertificateContent,
): string {
  const algorithm = sequence(objectId(oid.ecdsaWithSha256))
  const body = sequence(
    der(tag.version, der(tag.integer, Buffer.from([2]))),
    der(tag.integer, Buffer.from([serial])),
    algorithm,
    distinguishedName(issuer.name),
    sequence(...[notBefore ?? past, notAfter ?? farFuture].map(time => der(tag.time, Buffer.from(`${time}Z`)))),
    distinguishedName(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(tag.extensions, sequence(...extensions)),
  )
  const whole = sequence(body, algorithm, der(tag.bits, Buffer.from([0]), sign('sha256', body, issuer.key)))
  const lines = whole.toString('base64').replace(/.{64}/g, '$&\n')
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`
}

function alternativeNames({ hosts = [], addresses = [], uris = [] }: CertificateContent): Buffer {
  const names = [
    ...hosts.map(host => der(tag.hostName, Buffer.from(host))),
    ...addresses.map(address => der(tag.ipAddress, Buffer.from(address.split('.').map(Number)))),
    ...uris.map(uri => der(tag.uri, Buffer.from(uri))),
  ]
  const list = names.length > 0 ? names : [der(tag.ipAddress, Buffer.from([127, 0, 0, 1]))]
  return sequence(objectId(oid.alternativeNames), der(tag.octets, sequence(...list)))
}

const isAuthority = sequence(objectId(oid.basicConstraints), yes, der(tag.octets, sequence(yes)))

function usage(usages: CertificateContent['usages']): readonly Buffer[] {
  if (usages === undefined) return []
  const list = sequence(...usages.map(name => objectId(oid[name])))
  return [sequence(objectId(oid.extendedKeyUsage), der(tag.octets, list))]
}

const made = new Map<string, TestAuthority>()
const past = '20200101000000'
const farFuture = '21000101000000'

/** Returns an authority of that name. The same name gives the same one. */
export function testAuthority(name: string): TestAuthority {
  const known = made.get(name)
  if (known !== undefined) return known
  const { privateKey, publicKey } = newKeys()
  const signer = { name, key: privateKey }
  const extensions = [isAuthority, alternativeNames({})]
  const ca = certificate({ subject: name, publicKey, issuer: signer, serial: 1, extensions }, {})
  const authority = authorityOf(signer, ca, '')
  made.set(name, authority)
  return authority
}

/**
 * @param ca the certificate of the first authority
 * @param between those of the authorities between the first one and the issued certificates
 */
function authorityOf(issuer: Signer, ca: string, between: string): TestAuthority {
  let serial = 1
  const sign = (subject: string, publicKey: KeyObject, extensions: readonly Buffer[], content: CertificateContent) =>
    certificate({ subject, publicKey, issuer, serial: ++serial, extensions }, content)
  const issue = (content: CertificateContent): TestIdentity => {
    const { privateKey, publicKey } = newKeys()
    const own = sign(`${issuer.name} node`, publicKey, [alternativeNames(content), ...usage(content.usages)], content)
    return { key: pemOf(privateKey), cert: own + between, ca }
  }
  return {
    identity: issue({}), issue, root: { key: pemOf(issuer.key), cert: between || ca },
    intermediate: name => {
      const { privateKey, publicKey } = newKeys()
      return authorityOf({ name, key: privateKey }, ca, sign(name, publicKey, [isAuthority], {}) + between)
    },
  }
}

function pemOf(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }) as string
}

function newKeys(): { readonly privateKey: KeyObject; readonly publicKey: KeyObject } {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' })
}
