/** The options of the HTTPS listener. Lists may have the form of CouchDB: `['tlsv1.2', 'tlsv1.3']`. */
import { flag, integer, option, text, type OptionType } from '@sectional/core/options'

/** The names of CouchDB. Earlier versions are not spoken (RFC 8996). */
const versionNames = ['tlsv1.2', 'tlsv1.3'] as const
export type TlsVersionName = typeof versionNames[number]

/** Returns the items of a list in the form of CouchDB, or of one whose items are separated by commas or colons. */
function listedItems(given: string): readonly string[] {
  const items = /^\[(.*)\]$/.exec(given.trim())?.[1] ?? given
  return items.split(/[,:]/).map(item => item.trim().replace(/^(['"])(.*)\1$/, '$2')).filter(item => item !== '')
}

const versions: OptionType<readonly TlsVersionName[]> = {
  kind: `comma separated list of ${versionNames.join(', ')}`,
  parse: given => {
    const items = listedItems(given)
    const listed = versionNames.filter(name => items.includes(name))
    if (listed.length === 0 || listed.length < new Set(items).size) {
      throw new Error(`only a comma separated list of ${versionNames.join(', ')} is allowed`)
    }
    return listed
  },
  format: names => names.join(', '),
}

/** Cipher suites, separated by colons; empty: the defaults of Node. */
const cipherSuites: OptionType<string> = {
  kind: 'list of cipher suites',
  parse: given => {
    const items = listedItems(given)
    if (items.some(item => !/^[!+-]?[\w@+=-]+$/.test(item))) {
      throw new Error('only the names of cipher suites are allowed, as OpenSSL writes them, separated by colons')
    }
    return items.join(':')
  },
  format: value => value,
}

export const httpsDeclarations = {
  enabled: option('ssl/enable', flag, {
    default: false,
    effect: 'restart',
    filesOnly: true,
    help: 'Serve the API by HTTPS too. It needs cert_file and key_file.',
  }),

  /** Empty: that of HTTP. */
  host: option('ssl/bind_address', text, {
    default: '',
    effect: 'restart',
    filesOnly: true,
    help: 'Address on which the API is served by HTTPS. Empty: chttpd/bind_address.',
  }),

  port: option('ssl/port', integer({ min: 0, max: 65_535 }), {
    default: 6984,
    effect: 'restart',
    filesOnly: true,
    help: 'Port of HTTPS.',
  }),

  certFile: option('ssl/cert_file', text, {
    default: '',
    effect: 'live',
    filesOnly: true,
    help: 'PEM file with the certificate of this node, followed by those of intermediate authorities. Like the other '
      + 'files, it is relative to the folder of the configuration, and is read again when it changes.',
  }),

  keyFile: option('ssl/key_file', text, {
    default: '',
    effect: 'live',
    filesOnly: true,
    help: 'PEM file with the private key of the certificate.',
  }),

  password: option('ssl/password', text, {
    default: '',
    effect: 'live',
    filesOnly: true,
    secret: true,
    help: 'Password of the private key. Empty: the key is not encrypted.',
  }),

  caFile: option('ssl/cacert_file', text, {
    default: '',
    effect: 'live',
    filesOnly: true,
    help: 'PEM file with the certificates of the authorities that sign the certificates of clients.',
  }),

  verifyClients: option('ssl/verify_ssl_certificates', flag, {
    default: false,
    effect: 'restart',
    filesOnly: true,
    help: 'Ask clients for certificates, and refuse those that no authority of cacert_file has signed. A certificate '
      + 'does not replace a login.',
  }),

  requireCertificates: option('ssl/fail_if_no_peer_cert', flag, {
    default: false,
    effect: 'restart',
    filesOnly: true,
    help: 'Refuse clients without a certificate too. It needs verify_ssl_certificates.',
  }),

  versions: option('ssl/tls_versions', versions, {
    default: [...versionNames],
    effect: 'live',
    filesOnly: true,
    help: 'Versions of TLS that are spoken.',
  }),

  ciphers: option('ssl/ciphers', cipherSuites, {
    default: '',
    effect: 'live',
    filesOnly: true,
    help: 'Cipher suites that are used, as OpenSSL names them, the preferred one first. Empty: those of Node.',
  }),
}
