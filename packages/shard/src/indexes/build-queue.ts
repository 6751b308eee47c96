import { ReplicaError } from '@sectional/core'

/** The number of builds of a node that read changes at the same time. The others wait. */
export const buildsRunningMax = 4
/** The number of builds of a node that may wait. Further ones are refused as `overloaded`. */
export const buildsWaitingMax = 1000

/** Lets builds of a node begin in the order in which they were requested. */
export class BuildQueue {
  readonly #runningMax: number
  readonly #waitingMax: number
  readonly #waiting = new Set<() => void>()
  #running = 0

  constructor(runningMax = buildsRunningMax, waitingMax = buildsWaitingMax) {
    this.#runningMax = runningMax
    this.#waitingMax = waitingMax
  }

  /** The number of builds that run. */
  get running(): number { return this.#running }
  /** The number of builds that wait. */
  get waiting(): number { return this.#waiting.size }

  /**
   * Waits until the build may run.
   *
   * @param signal ends the wait; the promise then resolves as if the build could run
   * @returns a function to call when the build has ended
   * @throws ReplicaError `overloaded`, synchronously
   */
  enter(signal: AbortSignal): Promise<() => void> {
    if (this.#running < this.#runningMax) {
      this.#running++
      return Promise.resolve(this.#leaveOnce())
    }
    if (this.#waiting.size >= this.#waitingMax) {
      throw new ReplicaError('overloaded', `${this.#waitingMax} builds of indexes wait already`)
    }
    return new Promise(resolve => {
      const begin = (): void => {
        signal.removeEventListener('abort', cancel)
        this.#running++
        resolve(this.#leaveOnce())
      }
      const cancel = (): void => {
        this.#waiting.delete(begin)
        resolve(() => {})
      }
      this.#waiting.add(begin)
      signal.addEventListener('abort', cancel, { once: true })
    })
  }

  #leaveOnce(): () => void {
    let left = false
    return () => {
      if (left) return
      left = true
      this.#running--
      const [next] = this.#waiting
      if (next === undefined) return
      this.#waiting.delete(next)
      next()
    }
  }
}
