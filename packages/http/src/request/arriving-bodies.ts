import { AddressGroups } from '@sectional/core'
import type { RequestContext } from './request-context.ts'

/**
 * The requests whose body has not arrived completely. When there are too many, the oldest one of the address (or IPv6
 * network) with the most of them is ended, so that clients that send slowly do not use up the requests that a node
 * handles at a time.
 */
export class ArrivingBodies {
  readonly #max: number
  readonly #arriving = new AddressGroups<RequestContext, AbortController>()

  /** @param max at least 1 */
  constructor(max: number) {
    this.#max = max
  }

  /** @returns a signal that aborts when the rest of the body must not be awaited any more */
  add(request: RequestContext): AbortSignal {
    if (this.#arriving.size >= this.#max) this.#arriving.takeFromLargest()?.abort()
    const controller = new AbortController()
    this.#arriving.add(request.clientNetwork, request, controller)
    return controller.signal
  }

  /** Call this when the body has arrived, and when the request has ended, as often as necessary. */
  remove(request: RequestContext): void {
    this.#arriving.delete(request.clientNetwork, request)
  }
}
