/** The certificates of mutual TLS between nodes, as `[cluster] tls_..._file` name them. */
import { X509Certificate, createPrivateKey } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { TlsIdentity } from '@sectional/runtime'
import type { Options } from '../configuration/declarations.ts'
import { StartError } from './flags.ts'

const names = ['tls_key_file', 'tls_cert_file', 'tls_ca_file'] as const

/**
 * Undefined: links are not encrypted.
 *
 * @param folder what the paths are relative to
 * @throws StartError when some of the three are missing, or one cannot be read or is not what it should be
 */
export function clusterTls(cluster: Options['cluster'], folder: string): TlsIdentity | undefined {
  const missing = names.filter(name => cluster[name] === '')
  if (missing.length === names.length) return undefined
  if (missing.length > 0) throw new StartError(`[cluster] ${missing.join(' and ')} is empty: TLS between nodes needs ${names.join(', ')}; set all or none`)
  const identity = {
    key: read(cluster, 'tls_key_file', folder, text => createPrivateKey(text)),
    cert: read(cluster, 'tls_cert_file', folder, text => new X509Certificate(text)),
    ca: read(cluster, 'tls_ca_file', folder, text => new X509Certificate(text)),
  }
  if (!new X509Certificate(identity.cert).checkPrivateKey(createPrivateKey(identity.key))) {
    throw new StartError(`[cluster] tls_key_file = "${cluster.tls_key_file}" is not the key of the certificate in tls_cert_file = "${cluster.tls_cert_file}"`)
  }
  return identity
}

function read(cluster: Options['cluster'], name: typeof names[number], folder: string, check: (pem: string) => unknown): string {
  const path = resolve(folder, cluster[name])
  try {
    const pem = readFileSync(path, 'utf8')
    check(pem)
    return pem
  } catch (error) {
    throw new StartError(`[cluster] ${name} = "${cluster[name]}": ${path} cannot be used: ${(error as Error).message}`, { cause: error })
  }
}
