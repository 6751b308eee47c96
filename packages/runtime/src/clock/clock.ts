/** Time. Wall-clock time may jump and drift; monotonic time only goes on. */
export interface Clock {
  /**
   * Milliseconds since 1970 by the wall clock. Never used to order anything between nodes except local documents'
   * stamps.
   */
  now(): number
  /** Milliseconds since an arbitrary start, fractional. */
  monotonic(): number
  /** Calls back once after `ms` (at most 24 days). An open timer never keeps the process alive by itself. */
  setTimer(ms: number, callback: () => void): Timer
  /** Calls back after the current turn, before timers: yields to I/O. */
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
