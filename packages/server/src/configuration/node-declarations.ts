/** The options that the server itself reads when the node starts: its name, its addresses and its data directory. */
import { choice, integer, list, option, text, type OptionType } from '@sectional/core/options'
import { minSecretLength } from '@sectional/rpc'
import { address, host } from './address.ts'

const port = integer({ min: 0, max: 65_535 })

export const nodeDeclarations = {
  name: option('node/name', text, {
    default: 'node1@127.0.0.1',
    effect: 'restart',
    filesOnly: true,
    help: 'Name of this node. It must be unique in the cluster, and must not change while the node has data.',
  }),

  /** Empty when the node has no zone. */
  zone: option('node/zone', text, {
    default: '',
    effect: 'restart',
    help: 'Zone in which this node runs.',
  }),

  seeds: option('cluster/seedlist', list, {
    default: [],
    effect: 'restart',
    filesOnly: true,
    help: 'Cluster addresses (host:port) of the nodes with which this node forms or joins a cluster; the same list on '
      + 'every node. Empty: a cluster of one node.',
  }),

  /** Empty when there is no secret. */
  clusterSecret: option('cluster/secret', text, {
    default: '',
    effect: 'restart',
    filesOnly: true,
    secret: true,
    help: `Secret by which the nodes of one cluster authenticate each other: at least ${minSecretLength} characters, `
      + 'the same on every node. It is required if seedlist names another node.',
  }),

  clusterHost: option('cluster/bind_address', host, {
    default: '127.0.0.1',
    effect: 'restart',
    help: 'Address on which the cluster listener accepts connections of other nodes.',
  }),

  clusterPort: option('cluster/port', port, {
    default: 15_984,
    effect: 'restart',
    help: 'Port of the cluster listener.',
  }),

  advertisedAddress: option('cluster/advertised_address', address, {
    default: null,
    effect: 'restart',
    help: 'host:port under which other nodes reach the cluster listener. Empty: bind_address and port.',
  }),

  /** The three TLS files: each is empty, or a path relative to the folder of the configuration. */
  tlsKeyFile: option('cluster/tls_key_file', text, {
    default: '',
    effect: 'live',
    filesOnly: true,
    help: "PEM file with this node's private key, relative to the folder of its configuration. With tls_cert_file and "
      + 'tls_ca_file set too, links between nodes are encrypted, and both ends must show a certificate. Set it on '
      + 'every node or on none. The three files are read again when they change. Turning TLS on or off needs a '
      + 'restart.',
  }),

  tlsCertFile: option('cluster/tls_cert_file', text, {
    default: '',
    effect: 'live',
    filesOnly: true,
    help: "PEM file with this node's certificate. It must name the host of advertised_address, and this node: by the "
      + 'URI sectional:{node/name}, or by the host in node/name.',
  }),

  tlsCaFile: option('cluster/tls_ca_file', text, {
    default: '',
    effect: 'live',
    filesOnly: true,
    help: 'PEM file with the certificates of the authorities that sign the certificates of all nodes.',
  }),

  tlsKeyPassword: option('cluster/tls_key_password', text, {
    default: '',
    effect: 'live',
    filesOnly: true,
    secret: true,
    help: 'Password of the private key in tls_key_file. Empty: the key is not encrypted.',
  }),

  databaseDirectory: option('couchdb/database_dir', text, {
    default: './data',
    effect: 'restart',
    filesOnly: true,
    help: "Folder of the node's data, relative to the folder of its configuration.",
  }),

  httpHost: option('chttpd/bind_address', host, {
    default: '127.0.0.1',
    effect: 'live',
    help: 'Address on which the HTTP API listens.',
  }),

  httpPort: option('chttpd/port', port, {
    default: 5984,
    effect: 'live',
    help: 'Port of the HTTP API.',
  }),
}

const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const
type LogLevel = typeof logLevels[number]

/** The levels of CouchDB that have another name here. */
const foreignLogLevels: ReadonlyMap<string, LogLevel> = new Map([
  ['notice', 'info'], ['warning', 'warn'], ['err', 'error'], ['crit', 'error'], ['critical', 'error'],
  ['alert', 'error'], ['emerg', 'error'], ['emergency', 'error'], ['none', 'silent'],
])

const ownLogLevel = choice(...logLevels)
const logLevel: OptionType<LogLevel> = {
  ...ownLogLevel,
  parse: given => foreignLogLevels.get(given) ?? ownLogLevel.parse(given),
}

export const processDeclarations = {
  logLevel: option('log/level', logLevel, {
    default: 'info',
    effect: 'restart',
    help: 'Lowest level of the lines that are logged to standard output. The levels of CouchDB are known too: notice '
      + 'means info; warning warn; err, critical, alert and emergency error; none silent.',
  }),

  shutdownGraceMs: option('limits/shutdown_grace_ms', integer({ min: 0, max: 600_000, unit: 'milliseconds' }), {
    default: 5_000,
    effect: 'restart',
    help: 'Time that running requests have to finish when the node stops, or when its address is changed.',
  }),
}
