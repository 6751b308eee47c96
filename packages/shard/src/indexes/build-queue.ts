import { ReplicaError } from '@sectional/core'
import type { Clock, Timer } from '@sectional/runtime'

/** The number of builds of a node that read changes at the same time, except slow ones. The others wait. */
export const buildsRunningMax = 4
/** The number of slow builds that run beside them. */
export const slowBuildsMax = 64
/** The number of builds of a node that may wait. Further ones are refused as `overloaded`. */
export const buildsWaitingMax = 1000
/** Milliseconds without progress after which a build is slow, for instance because a map function does not end. */
export const slowBuildMs = 3000

/** The turn of one build. */
export interface BuildTurn {
  /** True once the build made no progress for `slowBuildMs`. */
  readonly wasSlow: boolean
  /** Call this when the build has written changes. */
  progressed(): void
  /** Call this once, when the build has ended. */
  leave(): void
}

interface Turn extends BuildTurn {
  wasSlow: boolean
  lane: Lane
  /** Monotonic time of the begin or the last progress, in milliseconds. */
  since: number
  timer: Timer | undefined
}

/** The builds that count for one limit. */
interface Lane {
  readonly runningMax: number
  /** May exceed `runningMax` for a while, after slow builds have made progress. No other build begins then. */
  running: number
  /** Begin the builds that wait, in the order in which they were requested. */
  readonly waiting: Set<() => void>
}

/**
 * Lets builds of a node begin in the order in which they were requested. Slow builds have a limit of their own: what
 * they do is mostly to wait for functions, and others would wait for the same functions with them.
 */
export class BuildQueue {
  readonly #clock: Clock
  readonly #waitingMax: number
  readonly #normal: Lane
  readonly #slow: Lane
  /** Slow turns that count as normal, because there are too many slow ones. */
  readonly #overdue = new Set<Turn>()

  constructor(
    clock: Clock, runningMax = buildsRunningMax, waitingMax = buildsWaitingMax, slowMax = slowBuildsMax,
  ) {
    this.#clock = clock
    this.#waitingMax = waitingMax
    this.#normal = { runningMax, running: 0, waiting: new Set() }
    this.#slow = { runningMax: slowMax, running: 0, waiting: new Set() }
  }

  /** The number of builds that run. */
  get running(): number { return this.#normal.running + this.#slow.running }
  /** The number of builds that wait. */
  get waiting(): number { return this.#normal.waiting.size + this.#slow.waiting.size }

  /**
   * Waits until the build may run.
   *
   * @param signal ends the wait; the promise then resolves as if the build could run
   * @param wasSlow whether the last build of this index was slow, or failed
   * @throws ReplicaError `overloaded`, synchronously
   */
  enter(signal: AbortSignal, wasSlow: boolean): Promise<BuildTurn> {
    const lane = wasSlow ? this.#slow : this.#normal
    if (lane.running < lane.runningMax) return Promise.resolve(this.#begin(lane))
    if (this.waiting >= this.#waitingMax) {
      throw new ReplicaError('overloaded', `${this.#waitingMax} builds of indexes wait already`)
    }
    return new Promise(resolve => {
      const begin = (): void => {
        signal.removeEventListener('abort', cancel)
        resolve(this.#begin(lane))
      }
      const cancel = (): void => {
        lane.waiting.delete(begin)
        resolve({ wasSlow: false, progressed: () => {}, leave: () => {} })
      }
      lane.waiting.add(begin)
      signal.addEventListener('abort', cancel, { once: true })
    })
  }

  #begin(lane: Lane): BuildTurn {
    lane.running++
    const turn: Turn = {
      wasSlow: false, lane, since: 0, timer: undefined,
      progressed: () => {
        const isQuick = this.#clock.monotonic() - turn.since < slowBuildMs
        if (isQuick && turn.lane === this.#slow) this.#move(turn, this.#normal)
        this.#watch(turn)
      },
      leave: () => {
        turn.timer?.cancel()
        this.#overdue.delete(turn)
        turn.lane.running--
        this.#fill()
      },
    }
    this.#watch(turn)
    return turn
  }

  /** Makes the turn a slow one unless it makes progress in time. */
  #watch(turn: Turn): void {
    this.#overdue.delete(turn)
    turn.timer?.cancel()
    turn.since = this.#clock.monotonic()
    turn.timer = this.#clock.setTimer(slowBuildMs, () => {
      turn.wasSlow = true
      if (turn.lane === this.#slow) return
      this.#overdue.add(turn)
      this.#fill()
    })
  }

  #move(turn: Turn, lane: Lane): void {
    turn.lane.running--
    turn.lane = lane
    lane.running++
  }

  /** Gives the free places to overdue turns, and then to the builds that wait. */
  #fill(): void {
    for (const turn of this.#overdue) {
      if (this.#slow.running >= this.#slow.runningMax) break
      this.#overdue.delete(turn)
      this.#move(turn, this.#slow)
    }
    for (const lane of [this.#normal, this.#slow]) {
      for (const begin of lane.waiting) {
        if (lane.running >= lane.runningMax) break
        lane.waiting.delete(begin)
        begin()
      }
    }
  }
}
