/** The private authority of `sectional cluster --tls`, and the certificates of its nodes. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeDirectory } from '@sectional/runtime'
import { makeAuthority, makeCertificate, requireOpenssl, type KeyPair } from './certificate-authority.ts'
import { writeDurably } from './durable-file.ts'
import { StartError } from './flags.ts'

const authorityDays = 3650
const nodeDays = 825
/** Days before its end at which a certificate is replaced. */
const renewalDays = 30
const dayMs = 86_400_000

export const authorityFolder = 'authority'
/** The folder of the TLS files of a node, in that of its configuration. */
const filesFolder = 'tls'
const names = { key: 'key.pem', certificate: 'certificate.pem', authority: 'authority.pem' }
const authorityNames = { key: 'authority-key.pem', certificate: names.authority }

type Setting = readonly [section: string, key: string, value: string]

/** Returns the path of the certificate that clients need to verify the nodes. */
export function authorityPath(folder: string): string {
  return join(folder, authorityFolder, authorityNames.certificate)
}

/** The settings of a node that has its certificate from `prepareCertificates`. */
export function tlsSettings(httpsPort: number): readonly Setting[] {
  const path = (name: string): string => `${filesFolder}/${name}`
  return [
    ['cluster', 'tls_key_file', path(names.key)],
    ['cluster', 'tls_cert_file', path(names.certificate)],
    ['cluster', 'tls_ca_file', path(names.authority)],
    ['ssl', 'enable', 'true'],
    ['ssl', 'port', String(httpsPort)],
    ['ssl', 'key_file', path(names.key)],
    ['ssl', 'cert_file', path(names.certificate)],
  ]
}

/**
 * Makes what is missing: the authority, and for each node a certificate. One that ends soon, or that another authority
 * has signed, is replaced.
 *
 * @throws StartError when the command openssl is missing
 */
export async function prepareCertificates(
  folder: string, nodes: readonly { readonly name: string; readonly folder: string }[],
): Promise<void> {
  const authority = await openAuthority(join(folder, authorityFolder))
  for (const node of nodes) {
    const files = join(node.folder, filesFolder)
    if (isCurrent(files, authority)) continue
    requireTool()
    const { key, certificate } = makeCertificate(authority, {
      name: node.name, hosts: [node.name.slice(node.name.indexOf('@') + 1), 'localhost'], days: nodeDays,
    })
    makeDirectory(files)
    await writeDurably(join(files, names.key), key)
    await writeDurably(join(files, names.authority), authority.certificate)
    await writeDurably(join(files, names.certificate), certificate)
  }
}

async function openAuthority(folder: string): Promise<KeyPair> {
  const paths = { key: join(folder, authorityNames.key), certificate: join(folder, authorityNames.certificate) }
  if (existsSync(paths.key) && existsSync(paths.certificate)) {
    return { key: readFileSync(paths.key, 'utf8'), certificate: readFileSync(paths.certificate, 'utf8') }
  }
  requireTool()
  const authority = makeAuthority(authorityDays)
  makeDirectory(folder)
  await writeDurably(paths.key, authority.key)
  await writeDurably(paths.certificate, authority.certificate)
  return authority
}

/** Whether the folder has a key with a certificate that the authority has signed, and that is valid for some time. */
function isCurrent(folder: string, authority: KeyPair): boolean {
  try {
    const [key, certificate, signer] = Object.values(names).map(name => readFileSync(join(folder, name), 'utf8'))
    const own = new X509Certificate(certificate!)
    return signer === authority.certificate && own.checkPrivateKey(createPrivateKey(key!))
      && own.verify(new X509Certificate(signer).publicKey)
      && own.validToDate.getTime() > Date.now() + renewalDays * dayMs
  } catch {
    // A file is missing or damaged: all of them are made again.
    return false
  }
}

/** @throws StartError when the command openssl is missing */
export function requireTool(): void {
  try {
    requireOpenssl()
  } catch (error) {
    throw new StartError((error as Error).message, { cause: error })
  }
}
