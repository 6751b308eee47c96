/** One request on its way through the pipeline. */
import type { DatabaseRecord } from '@sectional/cluster'
import type { HttpBodyWriter, HttpExchange } from '@sectional/runtime'
import type { UploadLease } from './upload-lease.ts'
import type { Query } from './query.ts'
import { anonymous, type User } from './user.ts'

/**
 * A request with its answer, from the request line to the last byte. It serves as the coordinator's `OperationContext`:
 * it carries the request id and the signal of a client gone.
 */
export class RequestContext {
  readonly exchange: HttpExchange
  readonly requestId: string
  /** After the override; never HEAD, which runs as GET. */
  readonly method: string
  readonly head: boolean
  /** Decoded path segments. */
  readonly segments: readonly string[]
  readonly query: Query
  /** Monotonic milliseconds. */
  readonly startedAt: number
  user: User = anonymous
  /** Value of a fresh session cookie for the answer to carry, or null. */
  renewedSession: string | null = null
  /** Values of the route's parameters, in order. */
  params: readonly string[] = []
  /** Label of the route in metrics and logs. */
  route = 'unknown'
  /** Sent status; 0 until an answer begins. */
  status = 0
  /** Milliseconds spent waiting for the request body. */
  bodyTimeMs = 0
  /** It counts among the bodies of clients that are not logged in. */
  hasAnonymousBody = false
  /** Bytes of the admission budget that this request holds. */
  reservedBytes = 0
  /** Estimated bytes of what its body became when it was parsed. */
  parsedBytes = 0
  /** Bytes of its answer that are counted there. */
  answerBytes = 0
  /** What it has uploaded, kept until it ends. */
  uploads: UploadLease | null = null
  /** A feed that waits for changes: admitted apart from other requests. */
  isFeed = false
  /** The open chunked answer, to be broken when the handler fails. */
  writer: HttpBodyWriter | null = null
  #database: DatabaseRecord | null = null

  constructor(
    exchange: HttpExchange, requestId: string, method: string, segments: readonly string[], query: Query,
    startedAt: number,
  ) {
    this.exchange = exchange
    this.requestId = requestId
    this.head = method === 'HEAD'
    this.method = this.head ? 'GET' : method
    this.segments = segments
    this.query = query
    this.startedAt = startedAt
  }

  get signal(): AbortSignal { return this.exchange.signal }

  /** The database that the path names; only routes below a database may ask. */
  get database(): DatabaseRecord {
    if (this.#database === null) throw new Error('this route names no database')
    return this.#database
  }

  set database(record: DatabaseRecord) { this.#database = record }

  /** The same where the path may name none. */
  get namedDatabase(): DatabaseRecord | null { return this.#database }

  header(name: string): string | undefined { return this.exchange.headers[name] }
}
