import type { RequestContext } from './request-context.ts'

/**
 * The requests whose body has not arrived completely. When there are too many, the oldest one of the address with the
 * most of them is ended, so that clients that send slowly do not use up the requests that a node handles at a time.
 */
export class ArrivingBodies {
  readonly #max: number
  #count = 0
  /** By address, oldest first. No inner map is empty. */
  readonly #addresses = new Map<string, Map<RequestContext, AbortController>>()

  /** @param max at least 1 */
  constructor(max: number) {
    this.#max = max
  }

  /** @returns a signal that aborts when the rest of the body must not be awaited any more */
  add(request: RequestContext): AbortSignal {
    if (this.#count >= this.#max) this.#endOldest()
    const { clientAddress } = request
    const neighbours = this.#addresses.get(clientAddress) ?? new Map<RequestContext, AbortController>()
    const controller = new AbortController()
    this.#addresses.set(clientAddress, neighbours.set(request, controller))
    this.#count++
    return controller.signal
  }

  /** Call this when the body has arrived, and when the request has ended, as often as necessary. */
  remove(request: RequestContext): void {
    const { clientAddress } = request
    const neighbours = this.#addresses.get(clientAddress)
    if (neighbours?.delete(request) !== true) return
    if (neighbours.size === 0) this.#addresses.delete(clientAddress)
    this.#count--
  }

  #endOldest(): void {
    let most = new Map<RequestContext, AbortController>()
    for (const neighbours of this.#addresses.values()) if (neighbours.size > most.size) most = neighbours
    const [oldest, controller] = most.entries().next().value!
    this.remove(oldest)
    controller.abort()
  }
}
