/** The certificate of the HTTPS listener, from the files that the options of the section `ssl` name. */
import { resolve } from 'node:path'
import type { OptionValues } from '@sectional/core/options'
import type { HttpsOptions } from '@sectional/runtime'
import { httpsDeclarations, type TlsVersionName } from '../configuration/https-declarations.ts'
import { certificatesIn, commonValidity } from './certificate-chain.ts'
import {
  fileStamp, readTlsContext, shown, type CertificateFile, type CertificateFiles, type TlsSettings,
} from './certificate-files.ts'
import { StartError } from './flags.ts'
import { LiveCertificate } from './live-certificate.ts'

/** The object may change while the node runs. */
export type HttpsTlsOptions = OptionValues<typeof httpsDeclarations>

const protocols = { 'tlsv1.2': 'TLSv1.2', 'tlsv1.3': 'TLSv1.3' } as const satisfies Record<TlsVersionName, string>

const optionOf = { ciphers: nameOf('ciphers'), ecdhCurve: nameOf('curves'), sigalgs: nameOf('signatures') }

/**
 * Returns undefined when HTTPS is not enabled.
 *
 * @param folder the folder to which the paths are relative
 * @throws StartError when an option is missing, or a file cannot be read or has wrong content
 */
export function httpsCertificate(
  options: HttpsTlsOptions, folder: string, nowMs: number,
): { readonly certificate: LiveCertificate; readonly options: HttpsOptions } | undefined {
  if (!options.enabled) return undefined
  const { verifyClients, requireCertificates } = options
  if (requireCertificates && !verifyClients) {
    throw new StartError(`${nameOf('requireCertificates')} = true: ${nameOf('verifyClients')} must be true too`)
  }
  const certificate = new LiveCertificate({
    use: 'HTTPS',
    stamp: () => fileStamp(httpsFiles(options, folder)),
    read: () => {
      for (const file of ['certFile', 'keyFile', ...verifyClients ? ['caFile'] as const : []] as const) {
        if (options[file] === '') throw new StartError(`${nameOf(file)} is empty: ${reasonFor(file)}`)
      }
      const files = httpsFiles(options, folder)
      const context = readTlsContext(files, tlsSettings(options), optionOf)
      const validity = commonValidity(certificatesIn(context.cert))
      return { context, file: shown(files.cert), validity, problem: null }
    },
  }, nowMs)
  const clientCertificates = !verifyClients ? 'ignored' : requireCertificates ? 'required' : 'optional'
  return { certificate, options: { context: certificate, clientCertificates } }
}

function reasonFor(file: 'certFile' | 'keyFile' | 'caFile'): string {
  return file === 'caFile'
    ? 'without it, no certificate of a client can be verified'
    : 'HTTPS needs a certificate and its key'
}

function httpsFiles(options: HttpsTlsOptions, folder: string): CertificateFiles {
  const file = (name: 'certFile' | 'keyFile' | 'caFile'): CertificateFile => ({
    option: nameOf(name), value: options[name], path: resolve(folder, options[name]),
  })
  return {
    key: file('keyFile'), cert: file('certFile'), ca: options.verifyClients ? file('caFile') : null,
    password: { option: nameOf('password'), value: options.password },
  }
}

function tlsSettings({ versions, ciphers, curves, signatures }: HttpsTlsOptions): TlsSettings {
  return {
    minVersion: protocols[versions[0]!], maxVersion: protocols[versions.at(-1)!],
    ...ciphers !== '' && { ciphers },
    ...curves !== '' && { ecdhCurve: curves },
    ...signatures !== '' && { sigalgs: signatures },
  }
}

function nameOf(option: keyof typeof httpsDeclarations): string {
  return `[ssl] ${httpsDeclarations[option].key}`
}
