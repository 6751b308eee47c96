interface Lane<Result> {
  /** Resolves when the running call has ended, also when it failed. */
  readonly ended: Promise<void>
  /** The call that begins when the running one has ended; undefined while nobody waits for it. */
  next: Promise<Result> | undefined
}

/**
 * Lets requests that come at the same time share the result of one call. Nobody gets a result that is older than the
 * own request: requests that come while a call runs share the next one, which begins when that call has ended. So at
 * most one call runs for each key.
 */
export class SharedCalls<Result> {
  /** By key; only keys with a running call. */
  readonly #lanes = new Map<string, Lane<Result>>()

  /** @param call begins a call; it must not depend on the request, because other requests get its result */
  share(key: string, call: () => Promise<Result>): Promise<Result> {
    const lane = this.#lanes.get(key)
    if (lane === undefined) return this.#begin(key, call)
    return lane.next ??= lane.ended.then(() => this.#begin(key, call))
  }

  #begin(key: string, call: () => Promise<Result>): Promise<Result> {
    const result = call()
    const ended = result.then(() => {}, () => {})
    const lane: Lane<Result> = { ended, next: undefined }
    this.#lanes.set(key, lane)
    void ended.then(() => {
      if (lane.next === undefined) this.#lanes.delete(key)
    })
    return result
  }
}
