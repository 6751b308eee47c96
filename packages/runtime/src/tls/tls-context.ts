/** What a TLS endpoint shows to its peers and accepts from them. */

export type TlsVersion = 'TLSv1.2' | 'TLSv1.3'

export interface TlsContext {
  /** The private key in PEM format, not encrypted. */
  readonly key: string
  /** The certificate in PEM format, followed by the certificates of intermediate authorities if there are any. */
  readonly cert: string
  /** Certificates of the authorities that sign the certificates of peers, in PEM format. */
  readonly ca?: string
  /** The oldest and the newest version that is spoken. Absent: the defaults of Node. */
  readonly minVersion?: TlsVersion
  readonly maxVersion?: TlsVersion
  /** Names of cipher suites as OpenSSL writes them, separated by colons. Absent: the defaults of Node. */
  readonly ciphers?: string
  /** Names of groups for the key exchange, and of signature algorithms, likewise. Absent: the defaults of Node. */
  readonly ecdhCurve?: string
  readonly sigalgs?: string
}

/** A context that may be replaced while connections are open. Open connections keep the one that they began with. */
export interface TlsContextSource<Context extends TlsContext = TlsContext> {
  /** The context for the next connection. */
  readonly current: Context
  /** Calls the listener after each replacement. Returns the function that ends this. */
  onChange(listener: () => void): () => void
}

/** Returns a source whose context is never replaced. */
export function fixedTlsContext<Context extends TlsContext>(current: Context): TlsContextSource<Context> {
  return { current, onChange: () => () => {} }
}
