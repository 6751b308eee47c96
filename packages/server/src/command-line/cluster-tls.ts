/** The certificate of the links between nodes, from the files that the options `[cluster] tls_..._file` name. */
import type { X509Certificate } from 'node:crypto'
import { resolve } from 'node:path'
import { checkServerIdentity } from 'node:tls'
import type { OptionValues } from '@sectional/core/options'
import { certificateProblem } from '@sectional/rpc'
import { alternativeNames, type LinkTlsContext } from '@sectional/runtime'
import { nodeDeclarations } from '../configuration/node-declarations.ts'
import { certificatesIn, commonValidity, trustedChain } from './certificate-chain.ts'
import { fileStamp, readTlsContext, shown, type CertificateFile, type CertificateFiles } from './certificate-files.ts'
import { StartError } from './flags.ts'
import { LiveCertificate, validityProblem, type ReadCertificate } from './live-certificate.ts'

const files = ['tlsKeyFile', 'tlsCertFile', 'tlsCaFile'] as const
/** The extended key usages (RFC 5280) of servers and of clients. A node is both. */
const usages = { serverAuth: '1.3.6.1.5.5.7.3.1', clientAuth: '1.3.6.1.5.5.7.3.2' }

type TlsFile = typeof files[number]
/** The object may change while the node runs. */
export type ClusterTlsOptions = Pick<
  OptionValues<typeof nodeDeclarations>, TlsFile | 'tlsKeyPassword' | 'name' | 'clusterHost' | 'advertisedAddress'
>

/**
 * Returns undefined when links are not encrypted.
 *
 * @param folder the folder to which the paths are relative
 * @throws StartError when only some of the three options are set, a file cannot be read or has wrong content, or all
 * other nodes would refuse the certificate
 */
export function clusterCertificate(
  options: ClusterTlsOptions, folder: string, nowMs: number,
): LiveCertificate<LinkTlsContext> | undefined {
  if (files.every(file => options[file] === '')) return undefined
  return new LiveCertificate({
    use: 'links between nodes',
    stamp: () => fileStamp(clusterFiles(options, folder)),
    read: atMs => {
      requireAll(options)
      return readChecked(options, clusterFiles(options, folder), atMs)
    },
  }, nowMs)
}

/** Other nodes refuse the certificates that this function refuses. */
function readChecked(
  options: ClusterTlsOptions, { ca, ...others }: LinkFiles, nowMs: number,
): ReadCertificate<LinkTlsContext> {
  // Every version of this program speaks the newest version of TLS.
  const context = readTlsContext({ ...others, ca }, { minVersion: 'TLSv1.3' })
  const file = shown(others.cert)
  const certificates = certificatesIn(context.cert)
  const [own] = certificates as [X509Certificate]
  const refuse = (reason: string): never => {
    throw new StartError(`Other nodes would refuse ${file}: ${reason}`)
  }
  const named = certificateProblem(options.name, alternativeNames(own.subjectAltName ?? ''))
  if (named !== null) {
    refuse(`${named}. Use a certificate of this node, or correct [node] ${nodeDeclarations.name.key}`)
  }
  for (const [usage, id] of Object.entries(usages)) {
    if (own.keyUsage?.includes(id) === false) {
      refuse(`its extended key usage lacks ${usage}, and a node needs ${Object.keys(usages).join(' and ')}`)
    }
  }
  const chain = trustedChain(certificates, certificatesIn(context.ca!)) ?? refuse(
    `no authority in ${shown(ca)} has signed it. Add its authority to this file on every node, or use another `
      + 'certificate; those of intermediate authorities belong behind it in its file',
  )
  const read = { context: { ...context, ca: context.ca! }, file, validity: commonValidity(chain) }
  // A certificate that is not valid yet will be.
  if (read.validity.toMs < nowMs) throw new StartError(validityProblem(read, nowMs)!)
  return { ...read, problem: hostProblem(options, own, file) }
}

/** A node whose certificate has no host can still connect to others, which is enough for a link. */
function hostProblem(
  { clusterHost, advertisedAddress }: ClusterTlsOptions, certificate: X509Certificate, file: string,
): string | null {
  const host = advertisedAddress?.host ?? clusterHost
  if (host === '0.0.0.0' || host === '::') return null
  const mismatch = checkServerIdentity(host, certificate.toLegacyObject())
  return mismatch === undefined ? null : `Other nodes cannot connect to this one with ${file}: it does not name `
    + `${host}, the host of [cluster] ${nodeDeclarations.advertisedAddress.key}. It names ${certificate.subjectAltName}`
}

function requireAll(options: ClusterTlsOptions): void {
  const missing = files.filter(file => options[file] === '')
  if (missing.length === 0) return
  throw new StartError(`[cluster] ${missing.map(keyOf).join(' and ')} is empty: `
    + `TLS between nodes needs ${files.map(keyOf).join(', ')}; set all or none`)
}

type LinkFiles = CertificateFiles & { readonly ca: CertificateFile }

function clusterFiles(options: ClusterTlsOptions, folder: string): LinkFiles {
  const [key, cert, ca] = files.map((file): CertificateFile => ({
    option: `[cluster] ${keyOf(file)}`, value: options[file], path: resolve(folder, options[file]),
  }))
  return {
    key: key!, cert: cert!, ca: ca!,
    password: { option: `[cluster] ${nodeDeclarations.tlsKeyPassword.key}`, value: options.tlsKeyPassword },
  }
}

function keyOf(file: TlsFile): string {
  return nodeDeclarations[file].key
}
