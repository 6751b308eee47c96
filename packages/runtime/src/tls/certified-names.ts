import type { TLSSocket } from 'node:tls'

/** A kind and a value; Node writes values with a comma, a quote or unusual characters as JSON strings. */
const alternativeName = /(?:^|, )([A-Za-z ]+:)("(?:[^"\\]|\\.)*"|[^",]*)(?=, |$)/g

/**
 * Returns the names in the certificate of the peer as `Connection.certifiedNames` has them. There are none if it has
 * shown no certificate in this session, or one that no authority has signed.
 */
export function certifiedNamesOf(socket: TLSSocket): readonly string[] {
  const certificate = socket.authorized ? socket.getPeerX509Certificate() : undefined
  return alternativeNames(certificate?.subjectAltName ?? '')
}

/** @param text the property `subjectAltName` of a certificate of Node */
export function alternativeNames(text: string): readonly string[] {
  return [...text.matchAll(alternativeName)].map(([, kind, value]) =>
    `${kind}${value!.startsWith('"') ? JSON.parse(value!) : value}`)
}
