/**
 * Makes an authority and certificates with the command openssl, because Node can only read certificates.
 * scripts/certificates/command.mjs runs this file without a build, so it imports nothing but modules of Node.
 */
import { spawnSync } from 'node:child_process'
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const commonNameMax = 64

/** A private key and its certificate in PEM format. */
export interface KeyPair { readonly key: string; readonly certificate: string }

export interface CertifiedNode {
  /** It becomes the URI `sectional:{name}`. */
  readonly name: string
  /** Hosts and addresses under which the node is reached. */
  readonly hosts: readonly string[]
  /** How long the certificate is valid. */
  readonly days: number
}

/** Whether name and hosts have only characters that have no meaning in a file of openssl or in a path. */
export function isNode(name: string, hosts: readonly string[]): boolean {
  return /^[A-Za-z0-9][\w.-]*@[A-Za-z0-9:][\w.:-]*$/.test(name)
    && hosts.every(host => isIP(host) !== 0 || /^[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?$/.test(host))
}

/** @throws Error with the code NO_OPENSSL when the command cannot be run */
export function requireOpenssl(): void {
  const { error, status } = spawnSync('openssl', ['version'], { stdio: 'ignore' })
  if (error === undefined && status === 0) return
  throw Object.assign(new Error('the command openssl is needed to make certificates; install it '
    + '(Debian: apt-get install openssl) and try again. Nothing was changed'), { code: 'NO_OPENSSL' })
}

/** Returns a key and a certificate that signs itself. */
export function makeAuthority(days: number): KeyPair {
  const name = `Sectional authority ${randomBytes(4).toString('hex')}`
  return inFolder(folder => {
    const key = makeKey()
    write(folder, 'key.pem', key)
    write(folder, 'settings', `[req]\ndistinguished_name = name\nprompt = no\n[name]\nCN = ${name}\n[authority]\n`
      + 'basicConstraints = critical, CA:TRUE, pathlen:0\nkeyUsage = critical, keyCertSign, cRLSign\n'
      + 'subjectKeyIdentifier = hash\n')
    openssl(folder, 'req', '-x509', '-new', '-sha256', '-key', 'key.pem', '-config', 'settings',
      '-extensions', 'authority', '-days', String(days), '-set_serial', serial(), '-out', 'certificate.pem')
    return { key, certificate: read(folder, 'certificate.pem') }
  })
}

/** Returns a new key and its certificate, for both ends of TLS connections. */
export function makeCertificate(authority: KeyPair, { name, hosts, days }: CertifiedNode): KeyPair {
  return inFolder(folder => {
    const key = makeKey()
    const names = [`URI:sectional:${name}`, ...hosts.map(host => `${isIP(host) === 0 ? 'DNS' : 'IP'}:${host}`)]
    write(folder, 'key.pem', key)
    write(folder, 'authority-key.pem', authority.key)
    write(folder, 'authority.pem', authority.certificate)
    write(folder, 'settings', '[req]\ndistinguished_name = name\nprompt = no\n[name]\n'
      + `CN = ${name.slice(0, commonNameMax)}\n`)
    write(folder, 'extensions', 'basicConstraints = critical, CA:FALSE\nkeyUsage = critical, digitalSignature\n'
      + 'extendedKeyUsage = serverAuth, clientAuth\nsubjectKeyIdentifier = hash\nauthorityKeyIdentifier = keyid\n'
      + `subjectAltName = ${names.join(', ')}\n`)
    openssl(folder, 'req', '-new', '-sha256', '-key', 'key.pem', '-config', 'settings', '-out', 'request.pem')
    openssl(folder, 'x509', '-req', '-sha256', '-in', 'request.pem', '-CA', 'authority.pem',
      '-CAkey', 'authority-key.pem', '-set_serial', serial(), '-days', String(days), '-extfile', 'extensions',
      '-out', 'certificate.pem')
    return { key, certificate: read(folder, 'certificate.pem') }
  })
}

function makeKey(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
}

/** A positive random number of up to 127 bits. */
function serial(): string {
  const bytes = randomBytes(16)
  bytes[0] = bytes[0]! & 0x7f | 0x40
  return `0x${bytes.toString('hex')}`
}

/** Calls the function with a new folder that nobody else can read, and removes it. */
function inFolder<Result>(make: (folder: string) => Result): Result {
  const folder = mkdtempSync(join(tmpdir(), 'make-certificates-'))
  try {
    return make(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function openssl(folder: string, ...words: string[]): void {
  const { error, status, stderr } = spawnSync('openssl', words, { cwd: folder, encoding: 'utf8' })
  if (error !== undefined) throw error
  if (status !== 0) throw new Error(`openssl ${words.join(' ')} failed:\n${stderr}`)
}

function write(folder: string, name: string, text: string): void {
  writeFileSync(join(folder, name), text, { mode: 0o600 })
}

function read(folder: string, name: string): string {
  return readFileSync(join(folder, name), 'utf8')
}
