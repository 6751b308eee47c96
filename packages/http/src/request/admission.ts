/**
 * Bounds what the node holds at once: requests, the bytes of their bodies and of their answers. Above, clients get 503
 * and may retry.
 */
import { ApiError } from '@sectional/core'
import type { HttpOptions } from '../settings/http-options.ts'
import type { RequestContext } from './request-context.ts'

const retryAfter = { 'Retry-After': '1' }

type AdmissionOptions = Pick<HttpOptions, 'concurrentRequestsMax' | 'feedsMax' | 'anonymousBodiesMax'
  | 'bufferedBodyBytesMax' | 'parsedBytesMax'>

export class Admission {
  readonly #requestsMax: number
  readonly #feedsMax: number
  readonly #anonymousBodiesMax: number
  readonly #bytesMax: number
  readonly #parsedMax: number
  #requests = 0
  #feeds = 0
  #anonymousBodies = 0
  #bytes = 0
  #answerBytes = 0
  #parsedBytes = 0
  #closed = false
  #onIdle: (() => void) | null = null

  constructor(
    { concurrentRequestsMax, feedsMax, anonymousBodiesMax, bufferedBodyBytesMax, parsedBytesMax }: AdmissionOptions,
  ) {
    this.#requestsMax = concurrentRequestsMax
    this.#feedsMax = feedsMax
    this.#anonymousBodiesMax = anonymousBodiesMax
    this.#bytesMax = bufferedBodyBytesMax
    this.#parsedMax = parsedBytesMax
  }

  get requests(): number { return this.#requests }
  /** Requests that wait for changes: they count among the requests no more. */
  get feeds(): number { return this.#feeds }
  get bufferedBytes(): number { return this.#bytes }

  /**
   * False: the request must be answered 503. Every `true` is paired with one `leave`.
   * @param always a health check, which is answered however many requests there are
   */
  enter(always = false): boolean {
    if (this.#closed || (this.#requests >= this.#requestsMax && !always)) return false
    this.#requests++
    return true
  }

  /** Why `enter` said no. */
  refusal(): ApiError {
    return this.#closed
      ? new ApiError('service_unavailable', 'This node is stopping; ask another one, or this one again shortly.', {
        headers: retryAfter,
      })
      : overloaded('requests')
  }

  leave(request: RequestContext | null): void {
    if (request !== null) {
      this.#bytes -= request.reservedBytes
      this.#answerBytes -= request.answerBytes
      this.#parsedBytes -= request.parsedBytes
    }
    if (request?.hasAnonymousBody) this.#anonymousBodies--
    if (request?.isFeed) this.#feeds--
    else this.#requests--
    if (this.#requests + this.#feeds === 0) this.#onIdle?.()
  }

  /**
   * Counts a request with a body whose client is not logged in: they must not take the places of those that are.
   * @throws ApiError `service_unavailable` when there are as many already as may be
   */
  admitAnonymousBody(request: RequestContext): void {
    if (this.#anonymousBodies >= this.#anonymousBodiesMax) {
      throw overloaded('request bodies of clients that are not logged in')
    }
    this.#anonymousBodies++
    request.hasAnonymousBody = true
  }

  /**
   * From now on the request only waits most of the time.
   * @throws ApiError `service_unavailable` when as many do already as may
   */
  becomeFeed(request: RequestContext): void {
    if (this.#feeds >= this.#feedsMax) throw overloaded('changes feeds')
    request.isFeed = true
    this.#feeds++
    this.#requests--
  }

  /** @throws ApiError `service_unavailable` when so many bytes would not fit now */
  checkBody(bytes: number): void {
    if (this.#bytes + bytes > this.#bytesMax) throw overloaded('request bodies')
  }

  /** Counts bytes that have arrived. @throws like `checkBody` */
  reserveBody(request: RequestContext, bytes: number): void {
    this.checkBody(bytes)
    this.#bytes += bytes
    request.reservedBytes += bytes
  }

  /**
   * Counts the estimated memory of what a body becomes when it is parsed, until the request ends. A request that is
   * alone always fits.
   * @throws ApiError `service_unavailable` when so much would not fit beside the other requests
   */
  reserveParsed(request: RequestContext, bytes: number): void {
    const others = this.#parsedBytes - request.parsedBytes
    if (others > 0 && this.#parsedBytes + bytes > this.#parsedMax) throw overloaded('large bodies')
    this.#parsedBytes += bytes
    request.parsedBytes += bytes
  }

  /**
   * @throws ApiError `service_unavailable` when clients are too slow to take other answers for one more of so many
   * bytes
   */
  checkAnswer(bytes: number): void {
    if (this.#answerBytes > 0 && this.#answerBytes + bytes > this.#bytesMax) throw overloaded('large answers')
  }

  /** Counts an answer that is there as a whole, until its client has taken it. */
  reserveAnswer(request: RequestContext, bytes: number): void {
    this.#answerBytes += bytes
    request.answerBytes += bytes
  }

  /** Refuses new requests; resolves when the running ones have ended. */
  async close(): Promise<void> {
    this.#closed = true
    if (this.#requests + this.#feeds > 0) await new Promise<void>(resolve => { this.#onIdle = resolve })
  }
}

export function overloaded(what: string): ApiError {
  return new ApiError('service_unavailable', `This node is handling as many ${what} as it can; try again shortly.`, {
    headers: retryAfter,
  })
}
