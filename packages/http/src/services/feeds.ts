/** The changes feeds that are open on this node, their timers, and the events that end them. */
import { DatabaseMap, type ClusterState, type ControlPlane, type DatabaseRecord } from '@sectional/cluster'
import type { Clock, Timer } from '@sectional/runtime'
import { mayFollow } from '../authentication/authorization.ts'
import { FeedUsers, type FindPresentUser } from './feed-users.ts'
import type { OpenFeed } from './open-feed.ts'

/** Due times are rounded to multiples of this, so that many feeds share one timer. */
const stepMs = 25
/** Due times of waits that are shorter than `shortWaitMs` are rounded to multiples of this. */
const shortStepMs = 5
const shortWaitMs = 1000
/** Heartbeats of all feeds that follow changes. This number costs about a tenth of a core. */
const heartbeatsPerSecondMax = 5_000

/** `due` is a monotonic time in milliseconds. */
interface Alarm { readonly due: number; readonly ring: () => void }

export class Feeds {
  readonly #clock: Clock
  readonly #control: ControlPlane
  readonly #users: FeedUsers
  readonly #open = new Set<OpenFeed>()
  /** The open feeds by the incarnation of their database. */
  readonly #ofDatabase = new Map<string, Set<OpenFeed>>()
  /** The databases at the last check for feeds that must end. */
  #databases: ClusterState['databases'] = new Map()
  readonly #alarms = new Map<number, Set<Alarm>>()
  #unsubscribe: (() => void) | undefined
  #timer: Timer | undefined
  #timerDue = Infinity
  #stopped = false

  constructor(clock: Clock, control: ControlPlane, findPresentUser: FindPresentUser) {
    this.#clock = clock
    this.#control = control
    this.#users = new FeedUsers(clock, control, findPresentUser)
  }

  /**
   * Registers a feed, which is ended when its database is deleted, when its user could not open it any more, or when
   * the node stops. Call `delete` when it has closed.
   */
  add(feed: OpenFeed): void {
    if (this.#stopped) return feed.end()
    const { incarnation } = feed.database
    this.#open.add(feed)
    this.#users.add(feed)
    const others = this.#ofDatabase.get(incarnation)
    if (others === undefined) this.#ofDatabase.set(incarnation, new Set([feed]))
    else others.add(feed)
    if (this.#unsubscribe === undefined) {
      this.#databases = this.#control.state()?.databases ?? this.#databases
      this.#unsubscribe = this.#control.onChange(({ databases }) => this.#endRefused(databases))
    }
    const database = this.#control.state()?.databases.get(feed.database.name)
    if (isRefused(feed, database)) feed.end()
  }

  delete(feed: OpenFeed): void {
    const { incarnation } = feed.database
    this.#open.delete(feed)
    this.#users.delete(feed)
    const others = this.#ofDatabase.get(incarnation)
    if (others?.delete(feed) && others.size === 0) this.#ofDatabase.delete(incarnation)
    if (this.#open.size > 0) return
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
  }

  /** Returns the interval of the heartbeats of a feed that asks for `ms`: longer when many feeds are open. */
  heartbeatMs(ms: number): number {
    return Math.max(ms, this.#open.size * 1000 / heartbeatsPerSecondMax)
  }

  isGone({ name, incarnation }: DatabaseRecord): boolean {
    return this.#control.state()?.databases.get(name)?.incarnation !== incarnation
  }

  /**
   * Calls `ring` once, at least `ms` and at most one step (25 ms) more after now. All waits of the node share one
   * timer.
   */
  after(ms: number, ring: () => void): Timer {
    const step = stepOf(ms)
    return this.#set(Math.ceil((this.#clock.monotonic() + ms) / step) * step, ring)
  }

  /**
   * Calls `ring` once, at most one step earlier than `ms` after the monotonic time `since`, but not before the next
   * step. Periodic waits that are counted from the last callback therefore do not drift.
   */
  within(ms: number, since: number, ring: () => void): Timer {
    const step = stepOf(ms)
    const next = Math.floor(this.#clock.monotonic() / step) + 1
    return this.#set(Math.max(next, Math.floor((since + ms) / step)) * step, ring)
  }

  /** Ends every feed that is open now with a complete response. */
  endAll(): void {
    for (const feed of [...this.#open]) feed.end()
  }

  stop(): void {
    this.#stopped = true
    this.endAll()
  }

  #set(due: number, ring: () => void): Timer {
    const alarm: Alarm = { due, ring }
    const alarms = this.#alarms.get(due)
    if (alarms === undefined) this.#alarms.set(due, new Set([alarm]))
    else alarms.add(alarm)
    if (due < this.#timerDue) this.#arm(due)
    return { cancel: () => this.#cancel(alarm) }
  }

  /**
   * Ends the feeds of deleted databases, and of users who are members no longer. It compares databases, so that its
   * cost does not depend on the number of feeds of others.
   */
  #endRefused(databases: ClusterState['databases']): void {
    for (const { before, after } of DatabaseMap.changed(this.#databases, databases)) {
      if (before === undefined) continue
      for (const feed of [...this.#ofDatabase.get(before.incarnation) ?? []]) {
        if (isRefused(feed, after)) feed.end()
      }
    }
    this.#databases = databases
  }

  #cancel(alarm: Alarm): void {
    const alarms = this.#alarms.get(alarm.due)
    if (alarms?.delete(alarm) && alarms.size === 0) {
      this.#alarms.delete(alarm.due)
      if (this.#alarms.size === 0) this.#arm(Infinity)
    }
  }

  #arm(due: number): void {
    this.#timer?.cancel()
    this.#timerDue = due
    this.#timer = due === Infinity
      ? undefined
      : this.#clock.setTimer(Math.max(0, due - this.#clock.monotonic()), () => this.#ring())
  }

  #ring(): void {
    const now = this.#clock.monotonic()
    const ringing = [...this.#alarms.keys()].filter(due => due <= now).sort((a, b) => a - b)
    for (const due of ringing) {
      const alarms = this.#alarms.get(due)
      this.#alarms.delete(due)
      for (const alarm of alarms ?? []) alarm.ring()
    }
    let first = Infinity
    for (const due of this.#alarms.keys()) first = Math.min(first, due)
    this.#arm(first)
  }
}

/** @param database the present database of that name; undefined: there is none */
function isRefused({ database: { incarnation }, user }: OpenFeed, database: DatabaseRecord | undefined): boolean {
  return database?.incarnation !== incarnation || !mayFollow(user, database)
}

function stepOf(ms: number): number {
  return ms < shortWaitMs ? shortStepMs : stepMs
}
