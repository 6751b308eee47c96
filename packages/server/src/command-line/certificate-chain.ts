/** Finds the certificates that a peer needs to trust a certificate, and the time for which all of them are valid. */
import { X509Certificate } from 'node:crypto'

/** Milliseconds since 1970. */
export interface Validity { readonly fromMs: number; readonly toMs: number }

const certificate = /-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----[^]*?-----END (?:X509 |TRUSTED )?CERTIFICATE-----/g
/** The maximum number of certificates in a chain. */
const chainMax = 10

/** @throws Error when the text has no certificate, or a malformed one */
export function certificatesIn(pem: string): readonly X509Certificate[] {
  const found = [...pem.matchAll(certificate)].map(([text]) => new X509Certificate(text))
  if (found.length === 0) throw new Error('it has no certificate in PEM format')
  return found
}

/** Returns the time for which all of the certificates are valid. */
export function commonValidity(certificates: readonly X509Certificate[]): Validity {
  return {
    fromMs: Math.max(...certificates.map(({ validFromDate }) => validFromDate.getTime())),
    toMs: Math.min(...certificates.map(({ validToDate }) => validToDate.getTime())),
  }
}

/**
 * Returns the first certificate with those of the authorities that have signed it, up to one that has signed itself and
 * is trusted. Of several such chains, the one that stays valid for longest; null when there is none.
 *
 * @param certificates the certificate, and those of intermediate authorities
 */
export function trustedChain(
  certificates: readonly X509Certificate[], authorities: readonly X509Certificate[],
): readonly X509Certificate[] | null {
  const trusted = new Set(authorities.map(({ fingerprint256 }) => fingerprint256))
  const signers = [...authorities, ...certificates.slice(1)]
  const extend = (chain: readonly X509Certificate[]): readonly (readonly X509Certificate[])[] => {
    const last = chain.at(-1)!
    if (isSignedBy(last, last)) return trusted.has(last.fingerprint256) ? [chain] : []
    if (chain.length === chainMax) return []
    return signers.filter(signer => !chain.includes(signer) && isSignedBy(last, signer))
      .flatMap(signer => extend([...chain, signer]))
  }
  return extend(certificates.slice(0, 1))
    .toSorted((a, b) => commonValidity(b).toMs - commonValidity(a).toMs)[0] ?? null
}

function isSignedBy(certificate: X509Certificate, signer: X509Certificate): boolean {
  try {
    return certificate.checkIssued(signer) && certificate.verify(signer.publicKey)
  } catch {
    // The key of the signer is of a kind that cannot have signed it.
    return false
  }
}
