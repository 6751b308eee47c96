import { SingleRun } from '@sectional/core'

/**
 * The builds that queries with `update=lazy` begin. Each index of a replica has at most one that has not begun yet,
 * whatever the number of queries.
 */
export class LazyBuilds {
  /** Aborts when the coordinator stops. Builds that are about to begin do not wait any longer then. */
  readonly stopping: AbortSignal
  readonly #builds = new Map<string, SingleRun>()

  constructor(stopping: AbortSignal) {
    this.stopping = stopping
  }

  /**
   * Begins a build now or, while that index has one that is about to begin, after it.
   *
   * @param key names the index and the replica
   * @param begin resolves when the build has begun; must not reject
   * @returns what resolves when no build of the index is left to begin, or at once when an earlier request waits for it
   */
  async request(key: string, begin: () => Promise<void>): Promise<void> {
    const earlier = this.#builds.get(key)
    if (earlier !== undefined) return earlier.request()
    const builds = new SingleRun(begin)
    this.#builds.set(key, builds)
    builds.request()
    while (builds.running !== undefined) await builds.running
    this.#builds.delete(key)
  }
}
