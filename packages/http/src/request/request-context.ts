/** The state of one request while it passes through the pipeline. */
import { clientNetwork } from '@sectional/core'
import type { DatabaseRecord } from '@sectional/cluster'
import type { HttpBodyWriter, HttpExchange } from '@sectional/runtime'
import type { UploadLease } from './upload-lease.ts'
import type { Query } from './query.ts'
import { anonymous, type User } from './user.ts'

/**
 * A request and its response, from the request line to the last byte. It serves as the coordinator's
 * `OperationContext`: it has the request id, and a signal that is aborted when the client disconnects.
 */
export class RequestContext {
  /** The exchange and its method as the client sent them. Decisions about where a request comes from use these. */
  readonly sent: HttpExchange
  readonly sentMethod: string
  /** This and the next four members are changed by `rewrite` and `enterPartition` only. */
  exchange: HttpExchange
  /** The method after an override. It is never HEAD, which runs as GET. */
  method: string
  head: boolean
  /** Whether the client itself sent HEAD, so that it knows that no body comes. */
  readonly #sentHead: boolean
  /** Decoded path segments. */
  segments: readonly string[]
  query: Query
  readonly requestId: string
  /** Address of the client, which is not that of the connection behind a trusted proxy. */
  clientAddress: string
  /** The host that a proxy names as the one that its client addressed. Every client can send it. */
  forwardedHost: string | undefined
  /** The function that the answer calls when it is a script instead of JSON; null: it is JSON. */
  callback: string | null = null
  /** Whether the answer is JSON, which becomes a script when there is a callback. */
  answersJson = false
  /** How often the request was rewritten. */
  rewrites = 0
  /** Monotonic milliseconds. */
  readonly startedAt: number
  user: User = anonymous
  /** Name with which the client tries to log in at `_session`; null before that, and at other endpoints. */
  attemptedName: string | null = null
  /** Value of a renewed session cookie that the response sets, or null. */
  renewedSession: string | null = null
  /** Values of the route's parameters, in order. */
  params: readonly string[] = []
  /** Label of the route in metrics and logs. */
  route = 'unknown'
  /** Status that was sent; 0 until the response begins. */
  status = 0
  /** Milliseconds spent waiting for the request body. */
  bodyTimeMs = 0
  /** Bytes of the body that the request holds in the admission budget. */
  reservedBytes = 0
  /** Estimated bytes of the parsed body that the request holds in the admission budget. */
  parsedBytes = 0
  /** Bytes of the response that the request holds in the admission budget. */
  answerBytes = 0
  /** Keeps the uploaded content from being removed until the request ends; null when nothing was uploaded. */
  uploads: UploadLease | null = null
  /** Whether the request is a changes feed that waits; such feeds have an admission limit of their own. */
  isFeed = false
  /** The chunked response that has begun; it is broken when the handler fails. */
  writer: HttpBodyWriter | null = null
  #database: DatabaseRecord | null = null

  constructor(
    exchange: HttpExchange, requestId: string, method: string, segments: readonly string[], query: Query,
    startedAt: number,
  ) {
    this.sent = exchange
    this.sentMethod = method
    this.exchange = exchange
    this.requestId = requestId
    this.clientAddress = exchange.remoteAddress
    this.#sentHead = exchange.method === 'HEAD'
    this.head = method === 'HEAD'
    this.method = this.head ? 'GET' : method
    this.segments = segments
    this.query = query
    this.startedAt = startedAt
  }

  /**
   * Continues with another exchange, path and query, to which `_rewrite` leads. The response is still the one to this
   * request; user, limits and accounting do not change.
   */
  rewrite(exchange: HttpExchange, segments: readonly string[], query: Query): void {
    this.exchange = exchange
    this.head ||= exchange.method === 'HEAD'
    this.method = exchange.method === 'HEAD' ? 'GET' : exchange.method
    this.segments = segments
    this.query = query
    this.#database = null
    this.rewrites++
  }

  /**
   * True when the request became HEAD by an override or a rewrite. Its answer must have the length 0: the client sent
   * another method, and waits for as many bytes as are announced.
   */
  get isEmptied(): boolean { return this.head && !this.#sentHead }

  /** Continues with another path, and with the parameter `partition`. */
  enterPartition(segments: readonly string[], partition: string): void {
    this.segments = segments
    this.query = this.query.with('partition', partition)
  }

  /** The address, or the IPv6 network, among whose requests limits are shared. */
  get clientNetwork(): string { return clientNetwork(this.clientAddress) }

  get signal(): AbortSignal { return this.exchange.signal }

  /** The database that the path names. Only routes below a database may read it. */
  get database(): DatabaseRecord {
    if (this.#database === null) throw new Error('this route names no database')
    return this.#database
  }

  set database(record: DatabaseRecord) { this.#database = record }

  /** The database that the path names, or null when it names none. */
  get namedDatabase(): DatabaseRecord | null { return this.#database }

  header(name: string): string | undefined { return this.exchange.headers[name] }
}
