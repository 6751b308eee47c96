/** Reads the files of mutual TLS between nodes that the options `[cluster] tls_..._file` name. */
import { X509Certificate, createPrivateKey } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { OptionValues } from '@sectional/core/options'
import type { TlsIdentity } from '@sectional/runtime'
import { nodeDeclarations } from '../configuration/node-declarations.ts'
import { StartError } from './flags.ts'

const files = ['tlsKeyFile', 'tlsCertFile', 'tlsCaFile'] as const

type TlsFile = typeof files[number]
type TlsOptions = Pick<OptionValues<typeof nodeDeclarations>, TlsFile>

/**
 * Returns undefined when links are not encrypted.
 *
 * @param folder the folder to which the paths are relative
 * @throws StartError when only some of the three options are set, or a file cannot be read or has wrong content
 */
export function clusterTls(options: TlsOptions, folder: string): TlsIdentity | undefined {
  const missing = files.filter(file => options[file] === '')
  if (missing.length === files.length) return undefined
  if (missing.length > 0) {
    throw new StartError(`[cluster] ${missing.map(keyOf).join(' and ')} is empty: `
      + `TLS between nodes needs ${files.map(keyOf).join(', ')}; set all or none`)
  }
  const identity = {
    key: read(options, 'tlsKeyFile', folder, text => createPrivateKey(text)),
    cert: read(options, 'tlsCertFile', folder, text => new X509Certificate(text)),
    ca: read(options, 'tlsCaFile', folder, text => new X509Certificate(text)),
  }
  if (!new X509Certificate(identity.cert).checkPrivateKey(createPrivateKey(identity.key))) {
    throw new StartError(`[cluster] tls_key_file = "${options.tlsKeyFile}" is not the key of the certificate `
      + `in tls_cert_file = "${options.tlsCertFile}"`)
  }
  return identity
}

function keyOf(file: TlsFile): string {
  return nodeDeclarations[file].key
}

function read(options: TlsOptions, file: TlsFile, folder: string, check: (pem: string) => unknown): string {
  const path = resolve(folder, options[file])
  try {
    const pem = readFileSync(path, 'utf8')
    check(pem)
    return pem
  } catch (error) {
    const setting = `[cluster] ${keyOf(file)} = "${options[file]}"`
    throw new StartError(`${setting}: ${path} cannot be used: ${(error as Error).message}`, { cause: error })
  }
}
