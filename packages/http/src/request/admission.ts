/**
 * Limits the requests and the bytes of request and response bodies that the node holds at the same time. Above a limit
 * clients get 503 and may retry.
 */
import { ApiError } from '@sectional/core'
import { admissionDeclarations } from '../settings/admission-options.ts'
import type { HttpOptions } from '../settings/http-options.ts'
import { ArrivingBodies } from './arriving-bodies.ts'
import { BodyMemory } from './body-memory.ts'
import { overloaded, retryAfter } from './overload-error.ts'
import type { RequestContext } from './request-context.ts'

/** The part of the admitted requests that may wait for bodies of clients that are logged in. */
const userBodiesPart = 0.5
/** The part of the memory for parsed bodies that feeds may take, which wait for as long as their clients want. */
const feedParsedPart = 0.5

type AdmissionOptions = Pick<HttpOptions, 'concurrentRequestsMax' | 'feedsMax' | 'anonymousBodiesMax'
  | 'bufferedBodyBytesMax' | 'parsedBytesMax'>

export class Admission {
  readonly #requestsMax: number
  readonly #feedsMax: number
  readonly #anonymousBodies: ArrivingBodies
  readonly #userBodies: ArrivingBodies
  readonly #bodies: BodyMemory
  readonly #answersMax: number
  readonly #parsedMax: number
  #requests = 0
  #feeds = 0
  #answerBytes = 0
  #parsedBytes = 0
  /** Those of feeds. */
  #feedParsedBytes = 0
  #closed = false
  #onIdle: (() => void) | null = null

  constructor(
    { concurrentRequestsMax, feedsMax, anonymousBodiesMax, bufferedBodyBytesMax, parsedBytesMax }: AdmissionOptions,
  ) {
    this.#requestsMax = concurrentRequestsMax
    this.#feedsMax = feedsMax
    this.#anonymousBodies = new ArrivingBodies(anonymousBodiesMax)
    this.#userBodies = new ArrivingBodies(Math.ceil(concurrentRequestsMax * userBodiesPart))
    this.#bodies = new BodyMemory(bufferedBodyBytesMax)
    this.#answersMax = bufferedBodyBytesMax
    this.#parsedMax = parsedBytesMax
  }

  get requests(): number { return this.#requests }
  /** Requests that wait for changes. They are not counted by `requests`. */
  get feeds(): number { return this.#feeds }
  get bufferedBytes(): number { return this.#bodies.bytes }

  /**
   * Admits a request. Returns false when it must be answered with 503; each `true` must be followed by one `leave`.
   * @param always true for a health check, which is admitted above the limit of requests
   */
  enter(always = false): boolean {
    if (this.#closed || (this.#requests >= this.#requestsMax && !always)) return false
    this.#requests++
    return true
  }

  /** Returns the error for a request that `enter` did not admit. */
  refusal(): ApiError {
    return this.#closed
      ? new ApiError('service_unavailable', 'This node is stopping; ask another one, or this one again shortly.', {
        headers: retryAfter,
      })
      : overloaded('requests', admissionDeclarations.concurrentRequestsMax)
  }

  leave(request: RequestContext | null): void {
    if (request !== null) {
      this.#bodies.release(request)
      if (request.isFeed) this.#feedParsedBytes -= request.parsedBytes
      this.#answerBytes -= request.answerBytes
      this.#parsedBytes -= request.parsedBytes
      this.bodyArrived(request)
    }
    if (request?.isFeed) this.#feeds--
    else this.#requests--
    if (this.#requests + this.#feeds === 0) this.#onIdle?.()
  }

  /**
   * Counts a request whose body has not arrived yet, so that such requests do not use up those that are admitted. Those
   * of clients that are not logged in have a limit of their own. Beyond a limit, an older one is ended.
   * @returns a signal that aborts when the rest of the body must not be awaited any more
   */
  admitBody(request: RequestContext): AbortSignal {
    return (request.user.name === null ? this.#anonymousBodies : this.#userBodies).add(request)
  }

  /** Call this when the body has arrived. */
  bodyArrived(request: RequestContext): void {
    this.#anonymousBodies.remove(request)
    this.#userBodies.remove(request)
  }

  /**
   * Counts the request as a feed instead of a request, because it spends most of its time waiting.
   * @throws ApiError `service_unavailable` when the limit of feeds is reached, or their bodies take much memory
   */
  becomeFeed(request: RequestContext): void {
    if (this.#feeds >= this.#feedsMax) throw overloaded('changes feeds', admissionDeclarations.feedsMax)
    const { parsedBytes } = request
    const others = this.#feedParsedBytes
    if (others > 0 && parsedBytes > 0 && others + parsedBytes > this.#parsedMax * feedParsedPart) {
      throw overloaded('bodies of changes feeds', admissionDeclarations.parsedBytesMax)
    }
    this.#bodies.keepForFeed(request)
    this.#feedParsedBytes += parsedBytes
    request.isFeed = true
    this.#feeds++
    this.#requests--
  }

  /** @throws ApiError `service_unavailable` when `bytes` more bytes do not fit into the budget of bodies now */
  checkBody(request: RequestContext, bytes: number): void {
    this.#bodies.check(request, bytes)
  }

  /** Counts bytes of a body that have arrived. @throws ApiError like `checkBody` */
  reserveBody(request: RequestContext, bytes: number): void {
    this.#bodies.reserve(request, bytes)
  }

  /**
   * Counts the estimated memory of a parsed body until the request ends. A request is never refused while no other
   * request holds parsed bodies.
   * @throws ApiError `service_unavailable` when the estimate does not fit in addition to those of other requests
   */
  reserveParsed(request: RequestContext, bytes: number): void {
    const others = this.#parsedBytes - request.parsedBytes
    if (others > 0 && this.#parsedBytes + bytes > this.#parsedMax) {
      throw overloaded('large bodies', admissionDeclarations.parsedBytesMax)
    }
    this.#parsedBytes += bytes
    request.parsedBytes += bytes
  }

  /** Returns whether `bytes` bytes of a response fit in addition to those that slow clients have not taken yet. */
  fitsAnswer(bytes: number): boolean {
    return this.#answerBytes === 0 || this.#answerBytes + bytes <= this.#answersMax
  }

  /** Counts the bytes of a whole response until the client has taken it. */
  reserveAnswer(request: RequestContext, bytes: number): void {
    this.#answerBytes += bytes
    request.answerBytes += bytes
  }

  /** Refuses new requests. Resolves when the running ones have ended. */
  async close(): Promise<void> {
    this.#closed = true
    if (this.#requests + this.#feeds > 0) await new Promise<void>(resolve => { this.#onIdle = resolve })
  }
}
