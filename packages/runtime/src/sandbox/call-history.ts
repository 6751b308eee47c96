import { hash } from 'node:crypto'
import type { Clock } from '../clock/clock.ts'
import type { Lane } from './call-queue.ts'
import type { SandboxFunction } from './sandbox.ts'

/** Milliseconds for which a database comes last, and a function is suspect, after a call of it has ended a child. */
const distrustMs = 60_000
/** Databases that are remembered. The one whose calls were answered longest ago is forgotten first. */
const databasesMax = 10_000
/** Functions that are remembered. The one that ended a child longest ago is forgotten first. */
const functionsMax = 1000

interface DatabaseHistory {
  /** True when the last message was answered within `quickMs`. */
  readonly isQuick: boolean
  /** Monotonic time in milliseconds until which the database comes last. */
  readonly distrustedUntil: number
}

const unknown: DatabaseHistory = { isQuick: false, distrustedUntil: -Infinity }

/**
 * What the calls of each database cost before. It keeps the functions of many databases that do not end from delaying
 * all others: each of them takes a child process for the whole time limit of a call.
 */
export class CallHistory {
  readonly #clock: Clock
  readonly #quickMs: number
  readonly #databases = new Map<string, DatabaseHistory>()
  /** The monotonic time until which a function is suspect, by its hash. */
  readonly #functions = new Map<string, number>()

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
    const name = nameOf(called)
    this.#functions.delete(name)
    this.#functions.set(name, this.#clock.monotonic() + distrustMs)
    if (this.#functions.size > functionsMax) this.#functions.delete(this.#functions.keys().next().value!)
  }

  /** Returns `suspect` if the function was the cause for which a child ended lately. */
  laneOf(called: SandboxFunction): Lane {
    // The name of a function is a hash of its source and modules, which may have megabytes.
    if (!this.#isDistrusted(called.database)) return 'ordinary'
    return this.#clock.monotonic() < (this.#functions.get(nameOf(called)) ?? -Infinity) ? 'suspect' : 'ordinary'
  }

  /** Returns true when the last message of the database was quick and it did not end a child before. */
  isQuick(database: string): boolean {
    return this.#of(database).isQuick && !this.#isDistrusted(database)
  }

  /** Returns the databases in the same order, except that those which ended a child lately come last. */
  inOrder(databases: readonly string[]): readonly string[] {
    const isDistrusted = (database: string): boolean => this.#isDistrusted(database)
    return [...databases.filter(database => !isDistrusted(database)), ...databases.filter(isDistrusted)]
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

function nameOf({ database, source, modules }: SandboxFunction): string {
  return hash('sha256', JSON.stringify([database, source, modules]))
}
