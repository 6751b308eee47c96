// Makes certificates for tests (X.509 in DER, RFC 5280), so that the repository contains no private key.
import { generateKeyPairSync, sign } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import type { TlsIdentity } from './network-ws.ts'

const tag = {
  boolean: 0x01, integer: 0x02, bits: 0x03, octets: 0x04, oid: 0x06, utf8: 0x0c, time: 0x18, sequence: 0x30, set: 0x31,
  version: 0xa0, extensions: 0xa3, ipAddress: 0x87,
}
const oid = {
  ecdsaWithSha256: '2a8648ce3d040302', commonName: '550403', alternativeNames: '551d11', basicConstraints: '551d13',
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

function certificate(
  subject: string, publicKey: KeyObject, issuer: string, issuerKey: KeyObject, serial: number, extension: Buffer,
): string {
  const algorithm = sequence(objectId(oid.ecdsaWithSha256))
  const body = sequence(
    der(tag.version, der(tag.integer, Buffer.from([2]))),
    der(tag.integer, Buffer.from([serial])),
    algorithm,
    distinguishedName(issuer),
    sequence(der(tag.time, Buffer.from('20200101000000Z')), der(tag.time, Buffer.from('21000101000000Z'))),
    distinguishedName(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(tag.extensions, sequence(extension)),
  )
  const whole = sequence(body, algorithm, der(tag.bits, Buffer.from([0]), sign('sha256', body, issuerKey)))
  const lines = whole.toString('base64').replace(/.{64}/g, '$&\n')
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`
}

const made = new Map<string, { readonly identity: TlsIdentity }>()

/**
 * Returns an authority of that name and a node certificate for 127.0.0.1 that it signed. The same name gives the same
 * ones.
 */
export function testAuthority(name: string): { readonly identity: TlsIdentity } {
  const known = made.get(name)
  if (known !== undefined) return known
  const root = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const node = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const isAuthority = sequence(objectId(oid.basicConstraints), yes, der(tag.octets, sequence(yes)))
  const isLoopback = sequence(
    objectId(oid.alternativeNames), der(tag.octets, sequence(der(tag.ipAddress, Buffer.from([127, 0, 0, 1])))),
  )
  const identity = {
    key: node.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    cert: certificate(`${name} node`, node.publicKey, name, root.privateKey, 2, isLoopback),
    ca: certificate(name, root.publicKey, name, root.privateKey, 1, isAuthority),
  }
  made.set(name, { identity })
  return { identity }
}
