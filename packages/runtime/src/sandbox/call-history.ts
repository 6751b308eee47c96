import type { Clock } from '../clock/clock.ts'
import type { SandboxFunction } from './sandbox.ts'

/** `suspect`: calls of functions that were the cause for which a child ended lately. */
export type Lane = 'ordinary' | 'suspect'

/** Milliseconds for which a database comes last, and a function is suspect, after a call of it has ended a child. */
const distrustMs = 60_000
/** Databases that are remembered. The one whose calls were answered longest ago is forgotten first. */
const databasesMax = 10_000
/** Suspect functions that are remembered, and the length of their texts. The first one is forgotten first. */
const suspectsMax = 1000
const suspectsLengthMax = 32 * 1024 * 1024
/** Suspect functions of one database, of which the texts are compared for each call of the database. */
const databaseSuspectsMax = 16
/** Messages of other databases between two of those that ended a child lately, as long as these wait. */
const trustedInRowMax = 8

interface DatabaseHistory {
  /** True when the last message was answered within `quickMs`. */
  readonly isQuick: boolean
  /** Monotonic time in milliseconds until which the database comes last. */
  readonly distrustedUntil: number
}

interface Suspect { readonly called: SandboxFunction; readonly until: number }

const unknown: DatabaseHistory = { isQuick: false, distrustedUntil: -Infinity }

/**
 * What the calls of each database cost before. It keeps the functions of many databases that do not end from delaying
 * all others: each of them takes a child process for the whole time limit of a call.
 */
export class CallHistory {
  readonly #clock: Clock
  readonly #quickMs: number
  readonly #databases = new Map<string, DatabaseHistory>()
  /** The functions that ended a child, with the monotonic times until which they are suspect, in their order. */
  #suspects: readonly Suspect[] = []
  /** Whether `forgetSuspects` has something to report. */
  #hasForgotten = false
  #trustedInRow = 0

  /** @param quickMs longest time of a message, in milliseconds, that counts as quick */
  constructor(clock: Clock, quickMs: number) {
    this.#clock = clock
    this.#quickMs = quickMs
  }

  /** Call this when a child has answered a message of the database, after `ms` milliseconds. */
  answered(database: string, ms: number): void {
    const { distrustedUntil } = this.#of(database)
    this.#set(database, { isQuick: ms <= this.#quickMs, distrustedUntil })
  }

  /** Call this when a call of the database has ended a child. */
  endedChild(database: string): void {
    this.#set(database, { isQuick: false, distrustedUntil: this.#clock.monotonic() + distrustMs })
  }

  /** Call this when a function was the cause for which a child ended. */
  endedChildBy(called: SandboxFunction): void {
    const others = this.#suspects.filter(({ called: other }) => !isSame(other, called))
    this.#suspects = [...others, { called, until: this.#clock.monotonic() + distrustMs }]
    const ofDatabase = this.#suspects.filter(({ called: { database } }) => database === called.database)
    if (ofDatabase.length > databaseSuspectsMax) this.#forget(suspect => suspect === ofDatabase[0])
    let length = this.#suspects.reduce((sum, { called: suspect }) => sum + lengthOf(suspect), 0)
    while (this.#suspects.length > suspectsMax || length > suspectsLengthMax) {
      const [first] = this.#suspects
      length -= lengthOf(first!.called)
      this.#forget(suspect => suspect === first)
    }
  }

  /** Forgets the suspects whose time is up. Returns true if any were forgotten since the last call. */
  forgetSuspects(): boolean {
    const now = this.#clock.monotonic()
    this.#forget(({ until }) => now >= until)
    const hasForgotten = this.#hasForgotten
    this.#hasForgotten = false
    return hasForgotten
  }

  #forget(isForgotten: (suspect: Suspect) => boolean): void {
    const left = this.#suspects.filter(suspect => !isForgotten(suspect))
    this.#hasForgotten ||= left.length < this.#suspects.length
    this.#suspects = left
  }

  /** Returns `suspect` if the function was the cause for which a child ended lately. */
  laneOf(called: SandboxFunction): Lane {
    if (!this.#isDistrusted(called.database)) return 'ordinary'
    return this.#suspects.some(({ called: other }) => isSame(other, called)) ? 'suspect' : 'ordinary'
  }

  /** Returns true when the last message of the database was quick and it did not end a child before. */
  isQuick(database: string): boolean {
    return this.#of(database).isQuick && !this.#isDistrusted(database)
  }

  /**
   * Returns the databases in the same order, except that those which ended a child lately come last. When
   * `trustedInRowMax` messages of others were sent since the last one of these, the first of them comes first.
   */
  inOrder(databases: readonly string[]): readonly string[] {
    const trusted = databases.filter(database => !this.#isDistrusted(database))
    const distrusted = databases.filter(database => this.#isDistrusted(database))
    const first = this.#trustedInRow < trustedInRowMax ? [] : distrusted.splice(0, 1)
    return [...first, ...trusted, ...distrusted]
  }

  /** Call this when a message of the database, with ordinary calls, was sent to a child. */
  sent(database: string): void {
    this.#trustedInRow = this.#isDistrusted(database) ? 0 : this.#trustedInRow + 1
  }

  #isDistrusted(database: string): boolean {
    return this.#clock.monotonic() < this.#of(database).distrustedUntil
  }

  #of(database: string): DatabaseHistory {
    return this.#databases.get(database) ?? unknown
  }

  #set(database: string, history: DatabaseHistory): void {
    this.#databases.delete(database)
    this.#databases.set(database, history)
    if (this.#databases.size <= databasesMax) return
    const [oldest] = this.#databases.keys()
    this.#databases.delete(oldest!)
  }
}

function lengthOf({ source, modules }: SandboxFunction): number {
  return source.length + modules.length
}

/** Compares the texts, since sources and modules may have megabytes, and a hash would read all of them each time. */
export function isSame(one: SandboxFunction, other: SandboxFunction): boolean {
  return one.database === other.database && one.designDocument === other.designDocument
    && one.source === other.source && one.modules === other.modules
}
