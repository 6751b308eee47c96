/** The options of the HTTPS listener. Lists may have the form of CouchDB: `['tlsv1.2', 'tlsv1.3']`. */
import { flag, integer, option, text, type OptionType } from '@sectional/core/options'
import { optionalHost } from './address.ts'

/** The names of CouchDB. Earlier versions are not spoken (RFC 8996). */
const versionNames = ['tlsv1.2', 'tlsv1.3'] as const
/** A file that lists them expects clients that could not connect, so they are not ignored. */
const outdatedVersions: readonly string[] = ['sslv3', 'tlsv1', 'tlsv1.1']
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
    const outdated = items.find(name => outdatedVersions.includes(name))
    if (outdated !== undefined) {
      const allowed = versionNames.join(' and ')
      throw new Error(`${outdated} is outdated (RFC 8996) and not spoken; only ${allowed} are allowed`)
    }
    const listed = versionNames.filter(name => items.includes(name))
    if (listed.length === 0 || listed.length < new Set(items).size) {
      throw new Error(`only a comma separated list of ${versionNames.join(', ')} is allowed`)
    }
    return listed
  },
  format: names => names.join(', '),
}

/** A list of names for OpenSSL, separated by colons; empty: the defaults of Node. */
function namesOf(kind: string, given: (text: string) => string = text => text): OptionType<string> {
  return {
    kind: `list of ${kind}`,
    parse: text => {
      const items = listedItems(given(text))
      if (items.some(item => !/^[!+-]?[\w@+=?*-]+$/.test(item))) {
        throw new Error(`only the names of ${kind} are allowed, as OpenSSL writes them, separated by colons`)
      }
      return items.join(':')
    },
    format: value => value,
  }
}

/** Replaces the pairs that Erlang has for signature algorithms of TLS 1.2: `{sha512, ecdsa}`. */
function pairsReplaced(given: string): string {
  return given.replace(/\{\s*(sha\d*)\s*,\s*(\w+)\s*\}/g, (_, hash: string, key: string) =>
    `${key.toUpperCase()}+${hash === 'sha' ? 'SHA1' : hash.toUpperCase()}`)
}

export const httpsDeclarations = {
  enabled: option('ssl/enable', flag, {
    default: false,
    effect: 'restart',
    filesOnly: true,
    help: 'Serve the API by HTTPS too. It needs cert_file and key_file.',
  }),

  /** Empty: that of HTTP. */
  host: option('ssl/bind_address', optionalHost, {
    default: '',
    effect: 'live',
    filesOnly: true,
    help: 'Address on which the API is served by HTTPS. Empty: chttpd/bind_address.',
  }),

  port: option('ssl/port', integer({ min: 0, max: 65_535 }), {
    default: 6984,
    effect: 'live',
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
    help: 'Versions of TLS that are spoken. tlsv1 and tlsv1.1, which CouchDB knows too, are outdated (RFC 8996) and '
      + 'refused.',
  }),

  ciphers: option('ssl/ciphers', namesOf('cipher suites'), {
    default: '',
    effect: 'live',
    filesOnly: true,
    help: 'Cipher suites that are used, as OpenSSL names them, the preferred one first. Empty: those of Node.',
  }),

  curves: option('ssl/ecc_curves', namesOf('curves'), {
    default: '',
    effect: 'live',
    filesOnly: true,
    help: 'Curves and other groups for the exchange of keys, as OpenSSL names them, such as X25519, P-256 or '
      + 'X25519MLKEM768. Empty: those of Node.',
  }),

  signatures: option('ssl/signature_algs', namesOf('signature algorithms', pairsReplaced), {
    default: '',
    effect: 'live',
    filesOnly: true,
    help: 'Signature algorithms of handshakes, as OpenSSL names them, such as ecdsa_secp256r1_sha256 or ECDSA+SHA256, '
      + 'or in the form of CouchDB: {sha256, ecdsa}. Empty: those of Node.',
  }),
}
