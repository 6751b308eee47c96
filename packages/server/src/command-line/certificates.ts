/** The certificates of a node: that of its links to other nodes, and that of HTTPS. */
import type { HttpsOptions, LinkTlsContext } from '@sectional/runtime'
import { httpsDeclarations } from '../configuration/https-declarations.ts'
import type { LiveConfiguration } from '../configuration/live-configuration.ts'
import { nodeDeclarations } from '../configuration/node-declarations.ts'
import { clusterCertificate } from './cluster-tls.ts'
import { httpsCertificate } from './https-tls.ts'
import type { CertificateWatch, LiveCertificate } from './live-certificate.ts'

export interface Certificates {
  /** undefined: links are not encrypted. */
  readonly links: LiveCertificate<LinkTlsContext> | undefined
  /** undefined: the API is not served by HTTPS. */
  readonly https: HttpsOptions | undefined
  /** Reads changed files again from now on. Returns the function that ends this. */
  watch(watch: CertificateWatch): () => void
}

/**
 * @param folder the folder to which paths in the configuration are relative
 * @throws StartError that names the option and the problem
 */
export function readCertificates(configuration: LiveConfiguration, folder: string, nowMs: number): Certificates {
  const links = clusterCertificate(configuration.options(nodeDeclarations), folder, nowMs)
  const https = httpsCertificate(configuration.options(httpsDeclarations), folder, nowMs)
  return {
    links, https: https?.options,
    watch: watch => {
      const ends = [links, https?.certificate].flatMap(certificate => certificate?.watch(watch) ?? [])
      return () => { for (const end of ends) end() }
    },
  }
}
