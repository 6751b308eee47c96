/**
 * Limits how many passwords are hashed at the same time, because each one occupies a thread of the pool for about
 * 100 ms. The turns of those that wait are fair, so that somebody who sends many wrong passwords holds up others by one
 * turn, and not by all of them.
 */
import { ApiError } from '@sectional/core'
import { overloaded } from '../request/overload-error.ts'
import { admissionDeclarations } from '../settings/admission-options.ts'

/** Passwords that may wait for a thread. */
const waitingMax = 100
/** Of these, those of known clients that are never refused in favour of others. */
const knownWaitingMax = 50
/** Turns of known clients in succession while others wait. */
const knownTurnsMax = 3

/** For whom a password is hashed. */
export interface PasswordSource {
  /** Address of the client, or its network (`clientNetwork`). The addresses take turns, and within one the names. */
  readonly address: string
  readonly name: string
  /** Whether a login with this name has succeeded from this address before. Such ones have precedence. */
  readonly known: boolean
  /** Ends the wait when it is aborted; absent: the hash is needed in any case. */
  readonly signal?: AbortSignal
}

interface Waiting extends PasswordSource {
  readonly begin: () => void
  readonly refuse: (error: ApiError) => void
}

export class PasswordQueue {
  readonly #runningMax: number
  readonly #known = new Turns()
  readonly #others = new Turns()
  #knownTurns = 0
  #running = 0

  /** @param runningMax passwords that are hashed at the same time */
  constructor(runningMax: number) {
    this.#runningMax = runningMax
  }

  /**
   * Hashes a password when it is its turn.
   * @throws ApiError `service_unavailable` with Retry-After when too many passwords are waiting. Then those are refused
   * whose address and name have the most of them: known clients if they hold more than their share of the places, and
   * otherwise others. The reason of the signal when it is aborted before the turn.
   */
  async run<Result>(source: PasswordSource, work: () => Promise<Result>): Promise<Result> {
    if (this.#running < this.#runningMax) this.#running++
    else await this.#turn(source)
    try {
      return await work()
    } finally {
      const next = this.#next()
      if (next === undefined) this.#running--
      else next.begin()
    }
  }

  async #turn(source: PasswordSource): Promise<void> {
    const { signal } = source
    signal?.throwIfAborted()
    const turns = source.known ? this.#known : this.#others
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const waiting: Waiting = { ...source, begin: resolve, refuse: reject }
    const leave = (): void => { if (turns.remove(waiting)) reject(signal!.reason) }
    turns.add(waiting)
    if (this.#known.size + this.#others.size > waitingMax) this.#refuseOne()
    signal?.addEventListener('abort', leave)
    try {
      await promise
    } finally {
      signal?.removeEventListener('abort', leave)
    }
  }

  #next(): Waiting | undefined {
    const isKnown = this.#known.size > 0 && (this.#knownTurns < knownTurnsMax || this.#others.size === 0)
    this.#knownTurns = isKnown ? this.#knownTurns + 1 : 0
    return (isKnown ? this.#known : this.#others).take()
  }

  #refuseOne(): void {
    const turns = this.#known.size > knownWaitingMax ? this.#known : this.#others
    turns.dropFromLargest()?.refuse(overloaded('password checks', admissionDeclarations.passwordChecksMax))
  }
}

/** Those that wait, by address and name. The order of the maps is that of the turns. */
class Turns {
  readonly #addresses = new Map<string, Map<string, Waiting[]>>()
  #size = 0

  get size(): number { return this.#size }

  add(waiting: Waiting): void {
    const names = this.#addresses.get(waiting.address) ?? new Map<string, Waiting[]>()
    this.#addresses.set(waiting.address, names)
    const list = names.get(waiting.name)
    if (list === undefined) names.set(waiting.name, [waiting])
    else list.push(waiting)
    this.#size++
  }

  /** Removes and returns the oldest one of the name whose turn it is; its address and name go behind the others. */
  take(): Waiting | undefined {
    for (const [address, names] of this.#addresses) {
      for (const [name, list] of names) {
        names.delete(name)
        this.#addresses.delete(address)
        const first = list.shift()!
        if (list.length > 0) names.set(name, list)
        if (names.size > 0) this.#addresses.set(address, names)
        this.#size--
        return first
      }
    }
    return undefined
  }

  /** Removes one that waits. Returns whether it has waited. */
  remove(waiting: Waiting): boolean {
    const names = this.#addresses.get(waiting.address)
    const list = names?.get(waiting.name)
    const at = list?.indexOf(waiting) ?? -1
    if (at < 0) return false
    list!.splice(at, 1)
    this.#tidy(waiting.address, waiting.name)
    return true
  }

  /** Removes and returns the newest one of the address with the most, and of the name with the most within it. */
  dropFromLargest(): Waiting | undefined {
    const [address, names] = largest(this.#addresses, sizeOf) ?? []
    const [name, list] = largest(names ?? new Map<string, Waiting[]>(), ({ length }) => length) ?? []
    const dropped = list?.pop()
    if (dropped === undefined) return undefined
    this.#tidy(address!, name!)
    return dropped
  }

  /** Call this after one was removed from the list of a name. */
  #tidy(address: string, name: string): void {
    const names = this.#addresses.get(address)!
    if (names.get(name)!.length === 0) names.delete(name)
    if (names.size === 0) this.#addresses.delete(address)
    this.#size--
  }
}

function sizeOf(names: ReadonlyMap<string, readonly Waiting[]>): number {
  return [...names.values()].reduce((sum, { length }) => sum + length, 0)
}

/** Returns the entry with the largest size; of several the last one. */
function largest<Value>(
  map: ReadonlyMap<string, Value>, size: (value: Value) => number,
): readonly [string, Value] | undefined {
  return [...map].reduce<readonly [string, Value] | undefined>(
    (best, entry) => best === undefined || size(entry[1]) >= size(best[1]) ? entry : best, undefined,
  )
}
