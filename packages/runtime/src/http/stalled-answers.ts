import type { ServerResponse } from 'node:http'

/**
 * A client that has taken a piece of a stream within this time, or the whole of another answer, is never disconnected
 * for its slowness.
 */
const stalledMsMin = 2_000
/** The number of connections that one call may close. */
const closedMax = 256

/**
 * The responses of which the kernel does not accept more, because their clients do not read. Each of them occupies one
 * of the requests that a node handles at a time, so clients that read nothing could keep all others out.
 */
export class StalledAnswers {
  /** The time since which each response waits, longest first. */
  readonly #sinceMs = new Map<ServerResponse, number>()

  begin(response: ServerResponse): void {
    this.#sinceMs.set(response, performance.now())
  }

  end(response: ServerResponse): void {
    this.#sinceMs.delete(response)
  }

  /** Closes the connections that have been stalled for longest. Returns whether it has closed one. */
  close(countMax = closedMax): boolean {
    const beginMsMax = performance.now() - stalledMsMin
    let closed = 0
    for (const [response, sinceMs] of this.#sinceMs) {
      if (sinceMs > beginMsMax || closed === countMax) break
      this.#sinceMs.delete(response)
      response.socket?.resetAndDestroy()
      closed++
    }
    return closed > 0
  }
}
