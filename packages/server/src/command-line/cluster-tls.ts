/** The certificate of the links between nodes, from the files that the options `[cluster] tls_..._file` name. */
import { resolve } from 'node:path'
import type { OptionValues } from '@sectional/core/options'
import type { LinkTlsContext } from '@sectional/runtime'
import { nodeDeclarations } from '../configuration/node-declarations.ts'
import { fileStamp, readTlsContext, type CertificateFile, type CertificateFiles } from './certificate-files.ts'
import { StartError } from './flags.ts'
import { LiveCertificate } from './live-certificate.ts'

const files = ['tlsKeyFile', 'tlsCertFile', 'tlsCaFile'] as const

type TlsFile = typeof files[number]
/** The object may change while the node runs. */
export type ClusterTlsOptions = Pick<OptionValues<typeof nodeDeclarations>, TlsFile | 'tlsKeyPassword'>

/**
 * Returns undefined when links are not encrypted.
 *
 * @param folder the folder to which the paths are relative
 * @throws StartError when only some of the three options are set, or a file cannot be read or has wrong content
 */
export function clusterCertificate(
  options: ClusterTlsOptions, folder: string,
): LiveCertificate<LinkTlsContext> | undefined {
  if (files.every(file => options[file] === '')) return undefined
  return new LiveCertificate({
    use: 'links between nodes',
    stamp: () => fileStamp(clusterFiles(options, folder)),
    read: () => {
      requireAll(options)
      // Every version of this program speaks the newest version of TLS.
      const context = readTlsContext(clusterFiles(options, folder), { minVersion: 'TLSv1.3' }, '')
      return { ...context, ca: context.ca! }
    },
  })
}

function requireAll(options: ClusterTlsOptions): void {
  const missing = files.filter(file => options[file] === '')
  if (missing.length === 0) return
  throw new StartError(`[cluster] ${missing.map(keyOf).join(' and ')} is empty: `
    + `TLS between nodes needs ${files.map(keyOf).join(', ')}; set all or none`)
}

function clusterFiles(options: ClusterTlsOptions, folder: string): CertificateFiles {
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
