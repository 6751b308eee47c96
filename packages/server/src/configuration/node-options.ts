/** The narrow, frozen options that the composition root hands down; nobody else sees the configuration as a whole. */
import { defaultHttpOptions, type HttpOptions } from '@sectional/http'
import type { CompactionOptions } from '@sectional/shard'
import { secretLengthMin, type Options } from './declarations.ts'
import { formatAddress, parseAddress, type Address } from './option.ts'
import { ConfigurationError, parseOptions, type Settings } from './settings.ts'

export interface NodeOptions {
  readonly name: string
  readonly zone: string | null
  readonly http: Address
  readonly httpOptions: HttpOptions
  readonly cluster: ClusterOptions
  /** What is left out has its default. */
  readonly compaction?: Partial<CompactionOptions>
  /** Milliseconds that running requests may take to end at a stop. */
  readonly shutdownGraceMs: number
}

export interface ClusterOptions {
  readonly listen: Address
  /** `host:port` that other nodes dial. */
  readonly advertised: string
  /** `host:port` of every seed, this node's own included when it stands in the list. */
  readonly seeds: readonly string[]
  /** null: a cluster of one that nobody can join. */
  readonly secret: string | null
  /** Milliseconds until a node with an empty disk may form a cluster. */
  readonly formationGraceMs: number
}

/** @throws ConfigurationError that names section/key, the value, what is allowed and the way out */
export function nodeOptions(settings: Settings): NodeOptions {
  const options = parseOptions(settings)
  if (!/^[^\s/@]+@[^\s/@]+$/.test(options.node.name)) {
    throw new ConfigurationError(`[node] name = "${options.node.name}": only name@host without blanks and slashes is allowed, for instance node1@127.0.0.1`)
  }
  return Object.freeze({
    name: options.node.name,
    zone: options.node.zone === '' ? null : options.node.zone,
    http: Object.freeze({ host: options.chttpd.bind_address, port: options.chttpd.port }),
    httpOptions: httpOptions(options),
    cluster: clusterOptions(options),
    compaction: compactionOptions(options),
    shutdownGraceMs: options.limits.shutdown_grace_ms,
  })
}

function httpOptions({ limits, log }: Options): HttpOptions {
  return Object.freeze({
    ...defaultHttpOptions,
    concurrentRequestsMax: limits.concurrent_requests,
    feedsMax: limits.changes_feeds,
    anonymousBodiesMax: limits.anonymous_bodies,
    bodyGraceMs: limits.body_grace_ms,
    anonymousBodyGraceMs: limits.anonymous_body_grace_ms,
    bodyBytesPerSecondMin: limits.body_bytes_per_second,
    bodyBytesMax: limits.body_bytes,
    bufferedBodyBytesMax: limits.buffered_body_bytes,
    gzipRatioMax: limits.gzip_ratio,
    jsonValuesMax: limits.json_values,
    parsedBytesMax: limits.parsed_bytes,
    batchedDocumentsMax: limits.batched_documents,
    batchedBytesMax: limits.batched_bytes,
    credentialsMax: limits.credentials,
    passwordChecksMax: limits.password_checks,
    requestLog: log.requests,
  })
}

function compactionOptions({ compaction }: Options): Partial<CompactionOptions> {
  return Object.freeze({
    replacedBytesMin: compaction.replaced_bytes,
    replacedPartMin: compaction.replaced_percent / 100,
    checkIntervalMs: compaction.check_interval_ms,
    restPart: compaction.rest_percent / 100,
  })
}

function clusterOptions({ cluster }: Options): ClusterOptions {
  const listen = Object.freeze({ host: cluster.bind_address, port: cluster.port })
  const advertised = formatAddress(cluster.advertised_address ?? listen)
  for (const seed of cluster.seedlist) checkSeed(seed)
  if (cluster.advertised_address === null && ['0.0.0.0', '::'].includes(listen.host) && cluster.seedlist.length > 0) {
    throw new ConfigurationError(`[cluster] advertised_address is empty: other nodes cannot dial ${listen.host}; set it to the host:port under which they reach this node`)
  }
  const needsSecret = cluster.seedlist.some(seed => seed !== advertised)
  if ((needsSecret || cluster.secret !== '') && cluster.secret.length < secretLengthMin) {
    throw new ConfigurationError(`[cluster] secret has ${cluster.secret.length} characters: a cluster needs at least ${secretLengthMin}, the same on every node and known to nobody else; for instance the output of: openssl rand -hex 32`)
  }
  return Object.freeze({
    listen, advertised, seeds: Object.freeze([...cluster.seedlist]), secret: cluster.secret === '' ? null : cluster.secret,
    // Without a secret no other node can have been linked with this one.
    formationGraceMs: cluster.secret === '' ? 0 : cluster.formation_grace_ms,
  })
}

function checkSeed(seed: string): void {
  try {
    parseAddress(seed)
  } catch (error) {
    throw new ConfigurationError(`[cluster] seedlist has "${seed}": ${(error as Error).message}`)
  }
}
