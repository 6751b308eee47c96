/** The changes feeds that are open on this node: their timers, and what ends them all. */
import type { ControlPlane, DatabaseRecord } from '@sectional/cluster'
import type { Clock, Timer } from '@sectional/runtime'

/** Feeds' waits end this much late at most; all that end within one tick share a timer. */
const tickMs = 25

export interface OpenFeed {
  readonly database: DatabaseRecord
  /** Lets the feed end well. */
  end(): void
}

interface Alarm { readonly tick: number; readonly ring: () => void }

export class Feeds {
  readonly #clock: Clock
  readonly #control: ControlPlane
  readonly #open = new Set<OpenFeed>()
  readonly #alarms = new Map<number, Set<Alarm>>()
  #unsubscribe: (() => void) | undefined
  #timer: Timer | undefined
  #timerTick = Infinity
  #stopped = false

  constructor(clock: Clock, control: ControlPlane) {
    this.#clock = clock
    this.#control = control
  }

  /** Ends the feed when its database goes or the node stops, until it is closed. */
  add(feed: OpenFeed): void {
    if (this.#stopped) return feed.end()
    this.#open.add(feed)
    this.#unsubscribe ??= this.#control.onChange(() => {
      for (const each of [...this.#open]) if (this.isGone(each.database)) each.end()
    })
  }

  delete(feed: OpenFeed): void {
    this.#open.delete(feed)
    if (this.#open.size > 0) return
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
  }

  isGone({ name, incarnation }: DatabaseRecord): boolean {
    return this.#control.state()?.databases.get(name)?.incarnation !== incarnation
  }

  /** Calls back once, after `ms` and less than two ticks more. However many wait, the node has one timer. */
  after(ms: number, ring: () => void): Timer {
    const tick = Math.ceil((this.#clock.monotonic() + ms) / tickMs)
    const alarm: Alarm = { tick, ring }
    const alarms = this.#alarms.get(tick)
    if (alarms === undefined) this.#alarms.set(tick, new Set([alarm]))
    else alarms.add(alarm)
    if (tick < this.#timerTick) this.#arm(tick)
    return { cancel: () => this.#cancel(alarm) }
  }

  /** Lets every feed that is open now end well. */
  endAll(): void {
    for (const feed of [...this.#open]) feed.end()
  }

  stop(): void {
    this.#stopped = true
    this.endAll()
  }

  #cancel(alarm: Alarm): void {
    const alarms = this.#alarms.get(alarm.tick)
    if (alarms?.delete(alarm) && alarms.size === 0) {
      this.#alarms.delete(alarm.tick)
      if (this.#alarms.size === 0) this.#arm(Infinity)
    }
  }

  #arm(tick: number): void {
    this.#timer?.cancel()
    this.#timerTick = tick
    this.#timer = tick === Infinity ? undefined : this.#clock.setTimer(Math.max(0, tick * tickMs - this.#clock.monotonic()), () => this.#ring())
  }

  #ring(): void {
    const now = this.#clock.monotonic() / tickMs
    const due = [...this.#alarms.keys()].filter(tick => tick <= now).sort((a, b) => a - b)
    for (const tick of due) {
      const alarms = this.#alarms.get(tick)
      this.#alarms.delete(tick)
      for (const alarm of alarms ?? []) alarm.ring()
    }
    let first = Infinity
    for (const tick of this.#alarms.keys()) first = Math.min(first, tick)
    this.#arm(first)
  }
}
