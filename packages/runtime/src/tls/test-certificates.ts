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
}

/** A key and a certificate, with the certificate of the authority that signed it. */
export type TestIdentity = TlsContext & { readonly ca: string }

/** What a certificate contains. Without names it is for the address 127.0.0.1. */
export interface CertificateContent {
  readonly hosts?: readonly string[]
  /** IPv4 addresses. */
  readonly addresses?: readonly string[]
  readonly uris?: readonly string[]
  /** The last second of its validity, as YYYYMMDDhhmmss in UTC. */
  readonly notAfter?: string
}

export interface TestAuthority {
  /** A certificate for 127.0.0.1. */
  readonly identity: TestIdentity
  /** Makes a new key with a certificate. */
  issue(content: CertificateContent): TestIdentity
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

function certificate(
  subject: string, publicKey: KeyObject, issuer: Signer, serial: number, extension: Buffer, notAfter: string,
): string {
  const algorithm = sequence(objectId(oid.ecdsaWithSha256))
  const body = sequence(
    der(tag.version, der(tag.integer, Buffer.from([2]))),
    der(tag.integer, Buffer.from([serial])),
    algorithm,
    distinguishedName(issuer.name),
    sequence(der(tag.time, Buffer.from('20200101000000Z')), der(tag.time, Buffer.from(`${notAfter}Z`))),
    distinguishedName(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(tag.extensions, sequence(extension)),
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

const made = new Map<string, TestAuthority>()
const farFuture = '21000101000000'

/** Returns an authority of that name. The same name gives the same one. */
export function testAuthority(name: string): TestAuthority {
  const known = made.get(name)
  if (known !== undefined) return known
  const root = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const signer = { name, key: root.privateKey }
  const isAuthority = sequence(objectId(oid.basicConstraints), yes, der(tag.octets, sequence(yes)))
  const ca = certificate(name, root.publicKey, signer, 1, isAuthority, farFuture)
  let serial = 1
  const issue = (content: CertificateContent): TestIdentity => {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const { notAfter = farFuture } = content
    return {
      key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
      cert: certificate(`${name} node`, publicKey, signer, ++serial, alternativeNames(content), notAfter),
      ca,
    }
  }
  const authority = { identity: issue({}), issue }
  made.set(name, authority)
  return authority
}
