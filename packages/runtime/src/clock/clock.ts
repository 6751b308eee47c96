/** Time. Wall-clock time can jump and drift; monotonic time never goes backwards. */
export interface Clock {
  /**
   * Milliseconds since 1970 by the wall clock. Between nodes it orders nothing except the stamps of local documents.
   */
  now(): number
  /** Milliseconds since an arbitrary start, with fractions. */
  monotonic(): number
  /** Calls back once after `ms` (at most 24 days). A set timer does not keep the process alive. */
  setTimer(ms: number, callback: () => void): Timer
  /** Calls back after the current turn and before timers, so that I/O can happen in between. */
  setImmediate(callback: () => void): void
}

export interface Timer { cancel(): void }

/** Resolves after `ms`, or as soon as the signal aborts. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    if (signal?.aborted) return resolve()
    const done = () => { timer.cancel(); signal?.removeEventListener('abort', done); resolve() }
    const timer = clock.setTimer(ms, done)
    signal?.addEventListener('abort', done, { once: true })
  })
}
