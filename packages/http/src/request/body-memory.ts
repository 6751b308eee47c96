import { admissionDeclarations } from '../settings/admission-options.ts'
import { overloaded } from './overload-error.ts'
import type { RequestContext } from './request-context.ts'

/** The part of the memory that the bodies of one address, or IPv6 network, may take, beside the first of them. */
const addressPart = 0.75
/** The part that bodies of feeds may take, beside the first of them: feeds wait for as long as their clients want. */
const feedsPart = 0.5

/**
 * The memory for bodies of requests. Clients decide how long a body arrives and how long a feed waits, so those of one
 * address, and feeds, leave a part of the memory to others.
 */
export class BodyMemory {
  readonly #max: number
  #bytes = 0
  #feedBytes = 0
  readonly #addresses = new Map<string, number>()

  constructor(bytesMax: number) {
    this.#max = bytesMax
  }

  get bytes(): number { return this.#bytes }

  /** @throws ApiError `service_unavailable` when `bytes` more bytes of a body do not fit now */
  check({ clientNetwork, reservedBytes }: RequestContext, bytes: number): void {
    const ofAddress = this.#addresses.get(clientNetwork) ?? 0
    if (this.#bytes + bytes > this.#max
      || (ofAddress > reservedBytes && ofAddress + bytes > this.#max * addressPart)) {
      throw overloaded('request bodies', admissionDeclarations.bufferedBodyBytesMax)
    }
  }

  /** Counts bytes of a body that have arrived. @throws ApiError like `check` */
  reserve(request: RequestContext, bytes: number): void {
    this.check(request, bytes)
    request.reservedBytes += bytes
    this.#add(request.clientNetwork, bytes)
  }

  /**
   * Call this when a request becomes a feed.
   * @throws ApiError `service_unavailable` when its body does not fit beside those of other feeds
   */
  keepForFeed({ reservedBytes }: RequestContext): void {
    const others = this.#feedBytes
    if (others > 0 && reservedBytes > 0 && others + reservedBytes > this.#max * feedsPart) {
      throw overloaded('bodies of changes feeds', admissionDeclarations.bufferedBodyBytesMax)
    }
    this.#feedBytes += reservedBytes
  }

  /** Call this when a request has ended. */
  release({ clientNetwork, isFeed, reservedBytes }: RequestContext): void {
    if (isFeed) this.#feedBytes -= reservedBytes
    if (reservedBytes > 0) this.#add(clientNetwork, -reservedBytes)
  }

  #add(address: string, bytes: number): void {
    this.#bytes += bytes
    const sum = (this.#addresses.get(address) ?? 0) + bytes
    if (sum === 0) this.#addresses.delete(address)
    else this.#addresses.set(address, sum)
  }
}
