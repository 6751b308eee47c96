import type { Timer } from '@sectional/runtime'
import type { RequestContext } from '../request-context.ts'
import type { Services } from '../services.ts'

/** Replicas keep content that nothing names for ten minutes at least. */
const renewMs = 5 * 60_000

/** Keeps what a request has uploaded until it ends, however long the rest of it takes to come. */
export class UploadLease {
  readonly #services: Services
  readonly #hashes = new Map<string, string[]>()
  #timer: Timer | undefined

  constructor(services: Services) {
    this.#services = services
  }

  add(id: string, hash: string, request: RequestContext): void {
    const hashes = this.#hashes.get(id)
    if (hashes === undefined) this.#hashes.set(id, [hash])
    else hashes.push(hash)
    if (this.#timer === undefined) this.#arm(request)
  }

  end(): void {
    this.#timer?.cancel()
  }

  #arm(request: RequestContext): void {
    const { coordinator, runtime } = this.#services
    this.#timer = runtime.clock.setTimer(renewMs, () => {
      this.#arm(request)
      for (const [id, hashes] of this.#hashes) void coordinator.keepBlobs(request.database, id, hashes, request)
    })
  }
}
