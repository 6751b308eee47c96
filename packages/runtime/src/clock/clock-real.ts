import type { Clock, Timer } from './clock.ts'

/** The maximum delay of Node's timers in milliseconds, 24.8 days; longer waits end early. */
const timerMsMax = 2 ** 31 - 1

/** The clocks and timers of the machine. */
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
