import type { Clock, Timer } from './clock.ts'

/** Node's timers take no more; longer waits end early, after 24.8 days. */
const timerMsMax = 2 ** 31 - 1

/** The machine's clocks and timers. */
export class RealClock implements Clock {
  now(): number {
    return Date.now()
  }

  monotonic(): number {
    return performance.now()
  }

  setTimer(ms: number, callback: () => void): Timer {
    const timer = setTimeout(callback, Math.min(ms, timerMsMax)).unref()
    return { cancel: () => clearTimeout(timer) }
  }

  setImmediate(callback: () => void): void {
    setImmediate(callback)
  }
}
