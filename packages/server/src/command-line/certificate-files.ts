/** Reads and checks the PEM files of a TLS endpoint. */
import { createPrivateKey, type KeyObject } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import type { TlsContext } from '@sectional/runtime'
import { certificatesIn } from './certificate-chain.ts'
import { StartError } from './flags.ts'

/** A file that an option names. */
export interface CertificateFile {
  /** The option, as messages name it: `[ssl] key_file`. */
  readonly option: string
  /** The value of the option. */
  readonly value: string
  /** The absolute path. */
  readonly path: string
}

export interface CertificateFiles {
  readonly key: CertificateFile
  readonly cert: CertificateFile
  /** null: the peers need no certificate. */
  readonly ca: CertificateFile | null
  /** The password of the private key, and the option that has it. */
  readonly password: { readonly option: string; readonly value: string }
}

/** The settings of TLS that are not files. */
export type TlsSettings = Pick<TlsContext, 'minVersion' | 'maxVersion' | NameList>
/** Settings whose names OpenSSL knows or not. */
export type NameList = 'ciphers' | 'ecdhCurve' | 'sigalgs'

/**
 * @param optionOf the options of the settings, as messages name them
 * @throws StartError that names the option and the problem; it contains neither the password nor any part of a file
 */
export function readTlsContext(
  files: CertificateFiles, settings: TlsSettings, optionOf: Partial<Record<NameList, string>> = {},
): TlsContext {
  const key = readFile(files.key, pem => decryptedKey(pem, files))
  const cert = readFile(files.cert, pem => { certificatesIn(pem); return pem })
  const ca = files.ca && readFile(files.ca, pem => { certificatesIn(pem); return pem })
  if (!certificatesIn(cert)[0]!.checkPrivateKey(key)) {
    throw new StartError(`${shown(files.key)} is not the key of the certificate in ${shown(files.cert)}`)
  }
  const context = {
    ...settings, key: key.export({ type: 'pkcs8', format: 'pem' }) as string, cert, ...ca !== null && { ca },
  }
  for (const [name, option] of Object.entries(optionOf) as [NameList, string][]) {
    usable(`${option} = "${settings[name]}"`, settings[name] === undefined ? {} : { [name]: settings[name] })
  }
  usable(shown(files.cert), { ...context })
  return context
}

function usable(culprit: string, options: SecureContextOptions): void {
  try {
    createSecureContext(options)
  } catch (error) {
    throw new StartError(`${culprit} cannot be used: ${(error as Error).message}`, { cause: error })
  }
}

/** Returns text that differs after a file was written or replaced. */
export function fileStamp({ key, cert, ca }: CertificateFiles): string {
  return [key, cert, ...ca ? [ca] : []].map(({ path }) => {
    try {
      const { mtimeMs, size, ino } = statSync(path)
      return `${path} ${mtimeMs} ${size} ${ino}`
    } catch {
      return `${path} absent`
    }
  }).join('\n')
}

function decryptedKey(pem: string, { key, password: { option, value } }: CertificateFiles): KeyObject {
  const encrypted = pem.includes('ENCRYPTED')
  if (encrypted && value === '') throw new StartError(`${shown(key)} is encrypted: ${option} is empty`)
  try {
    return createPrivateKey({ key: pem, ...encrypted && { passphrase: value } })
  } catch (error) {
    if (!encrypted) throw error
    throw new StartError(`${shown(key)} cannot be decrypted: ${option} is not its password`, { cause: error })
  }
}

function readFile<Result>(file: CertificateFile, check: (pem: string) => Result): Result {
  try {
    // Reading a pipe would block the node until somebody writes to it.
    if (!statSync(file.path).isFile()) throw new Error('it is not a regular file')
    return check(readFileSync(file.path, 'utf8'))
  } catch (error) {
    if (error instanceof StartError) throw error
    throw new StartError(`${shown(file)}: ${file.path} cannot be used: ${(error as Error).message}`, { cause: error })
  }
}

/** Names a file in messages. */
export function shown({ option, value }: CertificateFile): string {
  return `${option} = "${value}"`
}
