/**
 * The options that are read when the node starts, as frozen objects. The composition root passes each part only its own
 * options.
 */
import { controlDeclarations } from '@sectional/cluster'
import { hideCredentials, type OptionValues } from '@sectional/core/options'
import { httpDeclarations } from '@sectional/http'
import { minSecretLength } from '@sectional/rpc'
import { compactionDeclarations, indexDeclarations, type CompactionOptions, type IndexOptions } from '@sectional/shard'
import { formatAddress, parseAddress, wildcardHosts, type Address } from './address.ts'
import { httpsDeclarations } from './https-declarations.ts'
import { nodeDeclarations, processDeclarations } from './node-declarations.ts'
import { ConfigurationError, parseOptions, type Settings } from './settings.ts'

export interface NodeOptions {
  readonly name: string
  readonly zone: string | null
  readonly http: Address
  /** null: the API is not served by HTTPS. */
  readonly https: Address | null
  readonly cluster: ClusterOptions
  /** Absent values have their defaults. */
  readonly compaction?: Partial<CompactionOptions>
  /** Absent values have their defaults. */
  readonly indexes?: Partial<IndexOptions>
  /** Milliseconds that running requests may take to finish when the node stops. */
  readonly shutdownGraceMs: number
}

export interface ClusterOptions {
  readonly listen: Address
  /** The `host:port` to which other nodes connect. */
  readonly advertised: string
  /** The `host:port` of every seed; may include this node. */
  readonly seeds: readonly string[]
  /** null for a cluster of one node that no other node can join. */
  readonly secret: string | null
  /** Milliseconds until a node with an empty disk may form a cluster. */
  readonly formationGraceMs: number
}

const serverDeclarations = { ...nodeDeclarations, ...processDeclarations, ...controlDeclarations }

type ServerOptions = OptionValues<typeof serverDeclarations>

/** The addresses of the HTTP API. */
export interface ApiAddresses {
  readonly http: Address
  /** Set also when the API is not served by HTTPS. */
  readonly https: Address
}

/** @throws ConfigurationError that names section, key, value, the allowed values and a remedy */
export function nodeOptions(settings: Settings): NodeOptions {
  const options = parseOptions(serverDeclarations, settings)
  if (!/^[^\s/@]+@[^\s/@]+$/.test(options.name)) {
    throw new ConfigurationError(`[node] name = "${hideCredentials(options.name)}": only name@host without blanks and `
      + 'slashes is allowed, for instance node1@127.0.0.1', nodeDeclarations.name)
  }
  checkIterations(settings)
  const { http, https } = apiAddresses(settings)
  return Object.freeze({
    name: options.name,
    zone: options.zone === '' ? null : options.zone,
    http,
    https: parseOptions(httpsDeclarations, settings).enabled ? https : null,
    cluster: clusterOptions(options),
    compaction: parseOptions(compactionDeclarations, settings),
    indexes: parseOptions(indexDeclarations, settings),
    shutdownGraceMs: options.shutdownGraceMs,
  })
}

function checkIterations(settings: Settings): void {
  const { passwordIterationsMin: least, passwordIterationsMax: largest } = httpDeclarations
  const { min, max } = parseOptions({ min: least, max: largest }, settings)
  if (min <= max) return
  throw new ConfigurationError(`[${least.section}] ${least.key} is ${min}, more than ${largest.key}, which is ${max}: `
    + 'no user could log in', least)
}

/** @throws ConfigurationError for a value that its option refuses */
export function apiAddresses(settings: Settings): ApiAddresses {
  const { httpHost, httpPort } = parseOptions(nodeDeclarations, settings)
  const { host, port } = parseOptions(httpsDeclarations, settings)
  return {
    http: Object.freeze({ host: httpHost, port: httpPort }),
    https: Object.freeze({ host: host === '' ? httpHost : host, port }),
  }
}

function clusterOptions(options: ServerOptions): ClusterOptions {
  const { seeds, clusterSecret, advertisedAddress } = options
  const listen = Object.freeze({ host: options.clusterHost, port: options.clusterPort })
  const advertised = formatAddress(advertisedAddress ?? listen)
  for (const seed of seeds) checkSeed(seed, seeds)
  if (advertisedAddress === null && wildcardHosts.includes(listen.host) && seeds.length > 0) {
    throw new ConfigurationError(`[cluster] advertised_address is empty: other nodes cannot dial ${listen.host}; `
      + 'set it to the host:port under which they reach this node', nodeDeclarations.advertisedAddress)
  }
  const needsSecret = seeds.some(seed => seed !== advertised)
  if ((needsSecret || clusterSecret !== '') && clusterSecret.length < minSecretLength) {
    throw new ConfigurationError(`[cluster] secret has ${clusterSecret.length} characters: a cluster needs at least `
      + `${minSecretLength}, the same on every node and known to nobody else; for instance the output of: `
      + 'openssl rand -hex 32', nodeDeclarations.clusterSecret)
  }
  return Object.freeze({
    listen, advertised, seeds: Object.freeze([...seeds]), secret: clusterSecret === '' ? null : clusterSecret,
    // Without a secret no other node can have been connected with this one.
    formationGraceMs: clusterSecret === '' ? 0 : options.formationGraceMs,
  })
}

function checkSeed(seed: string, seeds: readonly string[]): void {
  try {
    parseAddress(seed)
  } catch (error) {
    const problem = (error as Error).message
    // A seed may be a part of a password that has a comma.
    const shown = hideCredentials(seeds.join(', '))
    throw new ConfigurationError(`[cluster] seedlist has "${shown.includes(seed) ? seed : shown}": ${problem}`,
      nodeDeclarations.seeds)
  }
}
