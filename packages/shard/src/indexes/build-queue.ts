import { ReplicaError } from '@sectional/core'
import type { Clock, Timer } from '@sectional/runtime'
import { QueuedBuilds, type QueuedKind } from './queued-builds.ts'

/** Milliseconds without progress after which a build is slow, for instance because a map function does not end. */
export const slowBuildMs = 3000
/**
 * Milliseconds after which a build is long. It gives its place to one of a group that has not begun, and while requests
 * keep the node busy, one long build runs at a time: what several of them hold in memory would prolong each collection
 * of garbage.
 */
export const buildSliceMs = 250
/**
 * Milliseconds after which the builds of a group give their places to another group that has begun. While requests keep
 * the node busy, it is `buildSliceMs`: only one build runs then, so that the turns of many groups would take long.
 */
export const groupSliceMs = 4000
/** Milliseconds after which a short build is long. Others can keep it from its work for longer than its work takes. */
export const shortBuildMs = 2000

/** Numbers of builds of a node. */
export interface BuildLimits {
  /** Builds that read changes at the same time, except short and slow ones. The others wait. */
  readonly runningMax: number
  /** Short builds that run beside them. */
  readonly shortMax: number
  /** The largest `RequestedBuild.changes` of a short build. */
  readonly shortChangesMax: number
  /** Slow builds that run beside them. */
  readonly slowMax: number
  /** Builds that may wait. Further ones are refused as `overloaded`. */
  readonly waitingMax: number
  /**
   * Builds that have given their place away and wait for another one. Each holds a scan and up to about 3 MiB of
   * changes. When there are more, builds take turns only with these, and no further one begins except short ones.
   */
  readonly pausedMax: number
}

const defaultBuildLimits: BuildLimits = Object.freeze({
  runningMax: 4, shortMax: 4, shortChangesMax: 1000, slowMax: 64, waitingMax: 1000, pausedMax: 64,
})

/** What a build has to do, as far as it is known when it is requested. */
export interface RequestedBuild {
  /**
   * Names the builds of one view, which are those of its shards. Its queries wait for all of them, so they do not take
   * turns with each other, and have all places for some seconds: LevelDB compacts the rows of few shards with less work
   * than rows of many shards that are written at the same time.
   */
  readonly group: string
  /** By how many sequence numbers the index is behind. It lacks as many changes at most. */
  readonly changes: number
  /** Whether the last build of this index was slow, or failed. */
  readonly wasSlow: boolean
  /** Whether the build has had a turn and continues. It is not refused then, however many builds wait. */
  readonly continues?: boolean
}

/** The turn of one build. */
export interface BuildTurn {
  /** True once the build made no progress for `slowBuildMs`. */
  readonly wasSlow: boolean
  /** Call this when the build has written changes. */
  progressed(): void
  /**
   * Call this before further changes are read. Resolves when the build may go on: at once, unless its time is up and
   * others need its place, a short build finds no other place, or the node is busy.
   */
  giveWay(): Promise<void>
  /** Call this once, when the build has ended. */
  leave(): void
}

/** The builds that were requested with the name of one group and have not ended. */
interface Group {
  readonly name: string
  builds: number
  /** Monotonic time at which its turn for normal builds began, in milliseconds. Undefined before the first one. */
  turnSince: number | undefined
  /** Whether it has to wait for its next turn. Some of its builds may still have places. */
  isTurnOver: boolean
}

interface Turn extends BuildTurn {
  readonly group: Group
  wasSlow: boolean
  lane: Lane
  /** Monotonic time of the start or the last progress, in milliseconds. */
  since: number
  /** Monotonic time at which the build got its place. */
  placedAt: number
  timer: Timer | undefined
}

/** The builds that count for one limit. */
interface Lane {
  readonly runningMax: number
  /** May exceed `runningMax` for a while, after slow builds have made progress. No other build begins then. */
  running: number
  readonly queued: QueuedBuilds<Group>
}

/**
 * Decides which builds of a node run. Groups take turns, and the builds of a group begin in the order in which they
 * were requested. Short builds have places of their own, so that a query that needs few changes does not wait for the
 * first builds of other views. Slow builds have a limit of their own: what they do is mostly to wait for
 * functions, and others would wait for the same functions with them.
 */
export class BuildQueue {
  readonly #clock: Clock
  readonly #isBusy: () => boolean
  readonly #limits: BuildLimits
  readonly #normal: Lane
  readonly #short: Lane
  readonly #slow: Lane
  readonly #groups = new Map<string, Group>()
  /** Whether the last group that got a turn before its time was one that had not begun. */
  #hasPreferred = false
  /** Slow turns that keep their places, because there are too many slow ones. */
  readonly #overdue = new Set<Turn>()
  /** Normal turns of builds that have used up their time once and make progress. */
  readonly #long = new Set<Turn>()

  /** @param isBusy whether requests leave little time to builds */
  constructor(clock: Clock, isBusy = (): boolean => false, limits: Partial<BuildLimits> = {}) {
    this.#clock = clock
    this.#isBusy = isBusy
    this.#limits = { ...defaultBuildLimits, ...limits }
    this.#normal = newLane(this.#limits.runningMax)
    this.#short = newLane(this.#limits.shortMax)
    this.#slow = newLane(this.#limits.slowMax)
  }

  get #lanes(): readonly Lane[] { return [this.#normal, this.#short, this.#slow] }
  /** The number of builds that run. */
  get running(): number { return this.#lanes.reduce((sum, { running }) => sum + running, 0) }
  /** The number of builds that wait, to begin or to continue. */
  get waiting(): number { return this.#lanes.reduce((sum, { queued }) => sum + queued.size, 0) }

  /**
   * Waits until the build may run.
   *
   * @param signal ends the waits; their promises then resolve as if the build could run
   * @throws ReplicaError `overloaded`, synchronously
   */
  enter(signal: AbortSignal, build: RequestedBuild): Promise<BuildTurn> {
    const { group: name, changes, wasSlow, continues = false } = build
    const { shortChangesMax, waitingMax } = this.#limits
    const lane = wasSlow ? this.#slow : changes <= shortChangesMax ? this.#short : this.#normal
    const beginsNow = lane.running < lane.runningMax && this.#mayBegin(lane)
    if (!beginsNow && !continues && this.waiting >= waitingMax) {
      throw new ReplicaError('overloaded', `${waitingMax} builds of indexes wait already`)
    }
    const group = this.#groups.get(name) ?? { name, builds: 0, turnSince: undefined, isTurnOver: true }
    group.builds++
    this.#groups.set(name, group)
    if (beginsNow) return Promise.resolve(this.#begin(lane, group, signal))
    return new Promise(resolve => {
      const begin = (): void => {
        signal.removeEventListener('abort', cancel)
        resolve(this.#begin(lane, group, signal))
      }
      const cancel = (): void => {
        lane.queued.remove(group, begin)
        this.#endOne(group)
        resolve({ wasSlow: false, progressed: () => {}, giveWay: async () => {}, leave: () => {} })
      }
      this.#enqueue(lane, group, 'waiting', begin)
      signal.addEventListener('abort', cancel, { once: true })
    })
  }

  #begin(lane: Lane, group: Group, signal: AbortSignal): BuildTurn {
    lane.running++
    if (lane === this.#normal) this.#beginTurn(group)
    else lane.queued.postpone(group)
    const turn: Turn = {
      group, wasSlow: false, lane, since: 0, placedAt: this.#clock.monotonic(), timer: undefined,
      progressed: () => {
        const isQuick = this.#clock.monotonic() - turn.since < slowBuildMs
        const isNormalAgain = isQuick && turn.lane === this.#slow
        if (isNormalAgain) this.#move(turn, this.#normal)
        this.#watch(turn)
        if (isNormalAgain) this.#fill()
      },
      giveWay: () => this.#giveWay(turn, signal),
      leave: () => {
        this.#endOne(group)
        if (this.#isWanted(turn)) this.#endTurn(group)
        this.#free(turn)
      },
    }
    this.#watch(turn)
    return turn
  }

  /** The builds of a group that has its turn come first, also those that are requested during the turn. */
  #enqueue(lane: Lane, group: Group, kind: QueuedKind, start: () => void): void {
    lane.queued.add(group, kind, start)
    if (lane === this.#normal && !group.isTurnOver) lane.queued.prefer(other => other === group)
  }

  /** Counts the end of a build of the group. */
  #endOne(group: Group): void {
    if (--group.builds === 0) this.#groups.delete(group.name)
  }

  #beginTurn(group: Group): void {
    if (!group.isTurnOver) return
    group.isTurnOver = false
    group.turnSince = this.#clock.monotonic()
  }

  /** Ends the turn of a group. Every second turn goes to a group that has not begun, and the others in their order. */
  #endTurn(group: Group): void {
    if (group.isTurnOver) return
    group.isTurnOver = true
    const { queued } = this.#normal
    queued.postpone(group)
    this.#hasPreferred = !this.#hasPreferred && this.#canBeginInPlace() && queued.prefer(isNew)
  }

  /** Returns whether another group should have the place of a turn. */
  #isWanted({ group, lane }: Turn): boolean {
    if (lane !== this.#normal) return false
    const turnMs = this.#clock.monotonic() - group.turnSince!
    if (group.isTurnOver || turnMs >= (this.#isBusy() ? buildSliceMs : groupSliceMs)) {
      return lane.queued.hasOther(group, () => true)
    }
    return turnMs >= buildSliceMs && this.#canBeginInPlace() && lane.queued.hasOther(group, isNew)
  }

  #free(turn: Turn): void {
    turn.timer?.cancel()
    this.#overdue.delete(turn)
    this.#long.delete(turn)
    turn.lane.running--
    this.#fill()
  }

  async #giveWay(turn: Turn, signal: AbortSignal): Promise<void> {
    if (turn.lane === this.#slow) return
    const sliceMs = turn.lane === this.#short ? shortBuildMs : buildSliceMs
    if (this.#clock.monotonic() - turn.placedAt < sliceMs) return
    const lane = this.#normal
    if (turn.lane === this.#short) {
      // It keeps its place when too many are paused, so that further short builds wait instead.
      if (!this.#mayBegin(lane)) return
      if (lane.running < lane.runningMax) {
        this.#move(turn, lane)
        this.#fill()
      }
    }
    this.#long.add(turn)
    // Builds that gave way to requests continue when the node is busy no more.
    this.#fill()
    const isWanted = this.#isWanted(turn)
    if (isWanted) this.#endTurn(turn.group)
    else if (turn.lane === lane && !(this.#isBusy() && this.#long.size > 1)) return
    await new Promise<void>(resolve => {
      const proceed = (): void => {
        signal.removeEventListener('abort', cancel)
        lane.queued.remove(turn.group, proceed)
        turn.lane = lane
        lane.running++
        this.#beginTurn(turn.group)
        this.#long.add(turn)
        turn.placedAt = this.#clock.monotonic()
        this.#watch(turn)
        resolve()
      }
      const cancel = (): void => {
        proceed()
        this.#fill()
      }
      this.#enqueue(lane, turn.group, 'paused', proceed)
      signal.addEventListener('abort', cancel, { once: true })
      this.#free(turn)
      if (signal.aborted && lane.queued.has(turn.group, proceed)) cancel()
    })
  }

  /** Makes the turn a slow one unless it makes progress in time. */
  #watch(turn: Turn): void {
    this.#overdue.delete(turn)
    turn.timer?.cancel()
    turn.since = this.#clock.monotonic()
    turn.timer = this.#clock.setTimer(slowBuildMs, () => {
      turn.wasSlow = true
      if (turn.lane === this.#slow) return
      if (turn.lane === this.#normal) this.#endTurn(turn.group)
      this.#long.delete(turn)
      this.#overdue.add(turn)
      this.#fill()
    })
  }

  #move(turn: Turn, lane: Lane): void {
    this.#long.delete(turn)
    turn.lane.running--
    turn.lane = lane
    lane.running++
    // It has the place out of turn, so it gives way as soon as others wait.
    if (lane === this.#normal) turn.group.turnSince ??= this.#clock.monotonic()
  }

  /** Gives the free places to overdue turns, and then to the builds that wait. */
  #fill(): void {
    for (const turn of this.#overdue) {
      if (this.#slow.running >= this.#slow.runningMax) break
      this.#overdue.delete(turn)
      this.#move(turn, this.#slow)
    }
    for (const lane of this.#lanes) {
      while (lane.running < lane.runningMax) {
        const next = this.#next(lane)
        if (next === undefined) break
        next()
      }
    }
  }

  /** Returns false while too many builds have given way: these continue first. */
  #mayBegin(lane: Lane): boolean {
    return lane.queued.paused <= this.#limits.pausedMax
  }

  /** Returns whether a normal build could begin in the place of one that gives way. */
  #canBeginInPlace(): boolean {
    return this.#normal.queued.paused < this.#limits.pausedMax
  }

  #next(lane: Lane): (() => void) | undefined {
    const mayContinue = this.#long.size === 0 || !this.#isBusy()
    const mayBegin = this.#mayBegin(lane)
    // Builds of groups that have begun would only be paused, too, and `pausedMax` would keep the others from beginning.
    const maySiblingsBegin = lane !== this.#normal || mayContinue
    return lane.queued.take((kind, group) => (
      kind === 'paused' ? mayContinue : mayBegin && (maySiblingsBegin || isNew(group))))
  }
}

function isNew({ turnSince }: Group): boolean {
  return turnSince === undefined
}

function newLane(runningMax: number): Lane {
  return { runningMax, running: 0, queued: new QueuedBuilds() }
}
