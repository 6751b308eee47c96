/**
 * The pipeline of a request: request id, admission, authentication, routing and access, handler, response, accounting.
 */
import type { ControlPlane, Coordinator, DatabaseEvents } from '@sectional/cluster'
import type { ApiError } from '@sectional/core'
import { connectionDeclarations, RepeatedLines } from '@sectional/runtime'
import type { HttpExchange, HttpHandler, Runtime } from '@sectional/runtime'
import type { Audit } from './audit/audit.ts'
import { Admission } from './request/admission.ts'
import { overloaded } from './request/overload-error.ts'
import { Authenticator } from './authentication/authenticator.ts'
import { Lockout } from './authentication/lockout.ts'
import { PasswordHasher } from './authentication/password-hasher.ts'
import { PasswordQueue } from './authentication/password-queue.ts'
import { PresentUsers } from './authentication/present-users.ts'
import { ProxyAuthentication, UnsignedProxyWarning } from './authentication/proxy-authentication.ts'
import { RefusalWork } from './authentication/refusal-work.ts'
import { RequestAuthentication } from './authentication/request-authentication.ts'
import { SameSiteWarning } from './authentication/same-site.ts'
import { Sessions } from './authentication/sessions.ts'
import { SessionSecrets } from './authentication/session-secrets.ts'
import { TokenAuthentication } from './authentication/token-authentication.ts'
import { ConfiguredKeys } from './tokens/configured-keys.ts'
import { FetchedKeys } from './tokens/fetched-keys.ts'
import { TokenVerifier } from './tokens/token-verifier.ts'
import { BatchWriter } from './services/batch-writer.ts'
import { Feeds } from './services/feeds.ts'
import { SharedCalls } from './services/shared-calls.ts'
import { FilterCalls } from './services/filter-calls.ts'
import type { Configuration } from './settings/configuration.ts'
import { preflightHeaders } from './messages/cross-origin.ts'
import { requireSameSite, requireSameSiteScript } from './messages/cross-site.ts'
import { dispatch, type Routes } from './pipeline/dispatch.ts'
import { renderError, renderFailure } from './messages/error-rendering.ts'
import type { HttpOptions } from './settings/http-options.ts'
import type { NodeInformation } from './settings/node-information.ts'
import type { RequestContext } from './request/request-context.ts'
import { CrossOriginHosts } from './request/cross-origin-hosts.ts'
import { splitTarget } from './request/request-path.ts'
import { scriptCallback } from './request/script-callback.ts'
import { VirtualHosts } from './request/virtual-hosts.ts'
import { auditRefusal } from './pipeline/audit-refusal.ts'
import { RequestMetrics } from './pipeline/request-metrics.ts'
import { readRequest, requestIdOf, unreadableRequest } from './pipeline/request-target.ts'
import { sendPreflight } from './messages/response.ts'
import { createRoutes } from './route-table.ts'
import type { Services } from './services/services.ts'
import { Accounts } from './authentication/accounts.ts'
import { withFutureUsers } from './users/future-users.ts'
import { HashUpgrades } from './users/hash-upgrades.ts'
import { PasswordRules } from './users/password-rules.ts'
import { withUserDocuments } from './users/user-document-writes.ts'
import { RequestIdGenerator, UuidGenerator } from './services/uuid-generator.ts'
import { SingleNodeSetup } from './services/single-node-setup.ts'

export interface HttpApiParts {
  readonly runtime: Runtime
  readonly control: ControlPlane
  readonly coordinator: Coordinator
  readonly databaseEvents: Pick<DatabaseEvents, 'open'>
  readonly configuration: Configuration
  readonly nodeInformation: NodeInformation
  /** Options declared `live` may change while the API runs. */
  readonly options: HttpOptions
  /** The secret that all nodes of the cluster share; empty on a node without a cluster. */
  readonly clusterSecret: string
  readonly audit: Audit
}

export interface HttpApi {
  /** The function that the HTTP listener calls for each request. */
  readonly handler: HttpHandler
  /** Ends every feed that is open now with a complete response. */
  endFeeds(): void
  /** Answers new requests with 503. Resolves when the running requests and the batched writes have ended. */
  stop(): Promise<void>
}

/** Creates the HTTP API of one node, with its limits, caches and feeds. It runs until `stop`. */
export function createHttpApi(parts: HttpApiParts): HttpApi {
  const { runtime, options, configuration } = parts
  const admission = new Admission(options)
  const batches = new BatchWriter(runtime.log, options.batchedDocumentsMax, options.batchedBytesMax)
  const feeds = new Feeds(runtime.clock, parts.control, feed => presentUsers.find(feed.user, feed.authorization))
  const unsignedProxy = new UnsignedProxyWarning(options, runtime.log)
  const sameSite = new SameSiteWarning(options, runtime.log)
  const hosts = new VirtualHosts(configuration, options)
  const crossOrigin = new CrossOriginHosts(configuration, options)
  let admitted = admittedClients(options)
  const unsubscribe = configuration.onChange(() => {
    const before = admitted
    admitted = admittedClients(options)
    if (options.maintenanceMode !== 'false' || admitted !== before) feeds.endAll()
    unsignedProxy.check()
    sameSite.check()
    hosts.refresh()
    crossOrigin.refresh()
  })
  const secrets = new SessionSecrets({ ...parts, clock: runtime.clock, random: runtime.random })
  const { clock, machine, random, turns } = runtime
  const passwords = new PasswordQueue(options.passwordChecksMax)
  const lockout = new Lockout({ clock, log: runtime.log, options, audit: parts.audit })
  const refusals = new RefusalWork({ clock, configuration, options })
  const accounts = new Accounts({ ...parts, clock, turns, refusals, accountsMax: options.credentialsMax })
  const hasher = new PasswordHasher({ passwords, machine, random, options })
  const upgrades = new HashUpgrades({ ...parts, accounts, hasher, clock, turns, log: runtime.log })
  const authenticator = new Authenticator({ accounts, passwords, lockout, refusals, upgrades, ...runtime, options })
  const sessions = new Sessions({ accounts, options, secrets, clock, random })
  const proxy = new ProxyAuthentication({ options, secrets, random })
  const fetched = new FetchedKeys({ client: runtime.httpClient, clock, log: runtime.log, options })
  const verifier = new TokenVerifier({ keys: new ConfiguredKeys(configuration), fetched, clock, options })
  const tokens = new TokenAuthentication({ verifier, configuration, clock, random, options })
  const presentUsers = new PresentUsers({ accounts, tokens })
  fetched.onChange = () => { tokens.forget() }
  const userDocuments = { accounts, hasher, rules: new PasswordRules(machine), options, audit: parts.audit, turns }
  const services: Services = {
    ...parts,
    coordinator: withUserDocuments(parts.coordinator, userDocuments),
    futureCoordinator: withUserDocuments(withFutureUsers(parts.coordinator, turns), userDocuments),
    admission,
    authentication: new RequestAuthentication({ options, sessions, proxy, tokens, authenticator }),
    authenticator,
    sessions,
    crossOrigin,
    batches,
    feeds,
    filterCalls: new FilterCalls(runtime.clock),
    uuids: new UuidGenerator(runtime, options),
    descriptions: new SharedCalls(),
    designReadings: new SharedCalls(),
    diskFailures: new RepeatedLines(runtime.log, runtime.clock),
  }
  const pipeline = new Pipeline(services, createRoutes())
  const setup = new SingleNodeSetup({ ...services, clock, log: runtime.log })
  return {
    handler: exchange => { pipeline.start(hosts.resolve(exchange)) },
    endFeeds: () => feeds.endAll(),
    stop: async () => {
      unsubscribe()
      feeds.stop()
      await admission.close()
      await setup.stop()
      await batches.drain()
      await upgrades.drain()
      secrets.stop()
      tokens.stop()
    },
  }
}

/** Returns a text that changes when an option may exclude clients who have open feeds. */
function admittedClients(options: HttpOptions): string {
  const { authenticationHandlers, proxyUsesSecret, requireValidUser, requireValidUserExceptForUp } = options
  return JSON.stringify([authenticationHandlers, proxyUsesSecret, requireValidUser, requireValidUserExceptForUp])
}

class Pipeline {
  readonly #services: Services
  readonly #routes: Routes
  readonly #requestIds: RequestIdGenerator
  readonly #metrics: RequestMetrics

  constructor(services: Services, routes: Routes) {
    this.#services = services
    this.#routes = routes
    this.#requestIds = new RequestIdGenerator(services.runtime.random)
    this.#metrics = new RequestMetrics(services.runtime.metrics, services.admission)
  }

  start(exchange: HttpExchange): void {
    const services = this.#services
    const startedAt = services.runtime.clock.monotonic()
    const requestId = requestIdOf(exchange, this.#requestIds)
    const isHealthCheck = healthCheck.test(exchange.target)
    if (exchange.isRefused && !isHealthCheck) {
      const { connectionsMax, addressPercent } = connectionDeclarations
      return this.#refuse(exchange, requestId, startedAt, overloaded('connections', connectionsMax, addressPercent))
    }
    if (!services.admission.enter(isHealthCheck)) {
      services.runtime.http.endStalled()
      return this.#refuse(exchange, requestId, startedAt, services.admission.refusal())
    }
    void this.#run(exchange, requestId, startedAt)
  }

  #refuse(exchange: HttpExchange, requestId: string, startedAt: number, error: ApiError): void {
    const request = unreadableRequest(exchange, requestId, startedAt)
    this.#render(request, error)
    this.#account(request, exchange)
  }

  /** Runs one request. It never rejects: every error becomes a response. */
  async #run(exchange: HttpExchange, requestId: string, startedAt: number): Promise<void> {
    const services = this.#services
    let request: RequestContext | null = null
    let isIdentified = false
    try {
      request = readRequest(exchange, requestId, services.options, startedAt)
      request.callback = scriptCallback(request, services.options)
      if (!this.#answerPreflight(request)) {
        const identified = services.authentication.identify(request)
        const { user, renewed } = identified instanceof Promise ? await identified : identified
        isIdentified = true
        request.user = user
        request.renewedSession = renewed
        requireSameSite(request, services.crossOrigin.of(request.exchange))
        if (request.callback !== null) requireSameSiteScript(request)
        if (carriesBody(exchange)) this.#expectBody(request)
        await dispatch(this.#routes, request, services)
      }
    } catch (error) {
      if (request !== null) auditRefusal(request, services, error, isIdentified)
      request ??= unreadableRequest(exchange, requestId, startedAt)
      this.#render(request, error)
    }
    if (exchange.delivery !== undefined) await exchange.delivery
    this.#finish(request, exchange)
  }

  /**
   * Sets the minimum speed of the body. A slow body occupies one of the admitted requests, so clients that are not
   * logged in get less time.
   */
  #expectBody(request: RequestContext): void {
    const {
      admission, options: { anonymousBodyGraceMs, bodyGraceMs, bodyBytesPerSecondMin: bytesPerSecond },
    } = this.#services
    const graceMs = request.user.name === null ? anonymousBodyGraceMs : bodyGraceMs
    request.exchange.bodyPace = { graceMs, bytesPerSecond, signal: admission.admitBody(request) }
  }

  /** Answers a CORS preflight, which browsers send without credentials. */
  #answerPreflight(request: RequestContext): boolean {
    const services = this.#services
    const { exchange, method } = request
    const headers = method === 'OPTIONS' ? preflightHeaders(request, services.crossOrigin.of(exchange)) : null
    if (headers === null) return false
    request.route = 'preflight'
    sendPreflight(request, services, headers)
    return true
  }

  #finish(request: RequestContext, exchange: HttpExchange): void {
    request.uploads?.end()
    this.#services.admission.leave(request)
    this.#account(request, exchange)
  }

  #render(request: RequestContext, error: unknown): void {
    try {
      renderError(request, this.#services, error)
    } catch (failure) {
      this.#services.runtime.log.warn(
        { requestId: request.requestId, error: String(failure) }, 'sending an error response failed',
      )
      renderFailure(request)
    }
  }

  /** @param exchange that of the client, also when the request was rewritten */
  #account(request: RequestContext, exchange: HttpExchange): void {
    const { clock, log } = this.#services.runtime
    const seconds = (clock.monotonic() - request.startedAt) / 1000
    this.#metrics.observe(request, seconds)
    const level = this.#services.options.requestLog
    if (level === 'none') return
    log[level]({
      requestId: request.requestId, peer: request.clientAddress, user: request.user.name, method: exchange.method,
      path: loggedPath(exchange.target), route: request.route, status: request.status,
      ms: Math.round(seconds * 1e6) / 1000,
    }, 'request')
  }
}

/** The health check of load balancers, which is answered even when every limit of requests is reached. */
const healthCheck = /^\/_up(?:\?|$)/

function carriesBody({ headers }: HttpExchange): boolean {
  const length = headers['content-length']
  return length === undefined ? headers['transfer-encoding'] !== undefined : length !== '0'
}

/**
 * Returns the path alone. The query may contain keys and selectors with data of documents, and the beginning of an
 * absolute URL a password. Neither must be logged.
 */
function loggedPath(target: string): string {
  return splitTarget(target).path
}
