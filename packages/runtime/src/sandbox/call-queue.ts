import { isSame, type Lane } from './call-history.ts'
import type { ChildCall } from './child/sandbox-child.ts'
import { HeldTexts } from './held-texts.ts'
import { SandboxError, type SandboxFunction, type SandboxLimits } from './sandbox.ts'

/** What one message to a child may contain. A single call may exceed `messageBytesMax`. */
const messageCallsMax = 64
const messageItemsMax = 1000
const messageBytesMax = 1024 * 1024

/** The share of the bytes that is left to databases whose calls are quick, and that calls of suspects may use. */
const bytesShare = 4
/** The share of the bytes that calls of suspects of one database may use. */
const databaseBytesShare = 2 * bytesShare

export interface PendingCall extends ChildCall {
  /** Set by the queue. */
  lane: Lane
  /** True when the child that ran the call ended. The call then runs once more, as the only call of a message. */
  retried: boolean
  /** @param text outcomes (`outcome-text.ts`) */
  readonly resolve: (text: string) => void
  readonly reject: (error: SandboxError) => void
}

interface LaneCalls {
  /** The waiting calls by database, each with one at least. The database whose turn is next comes first. */
  readonly waiting: Map<string, PendingCall[]>
  /** The calls that wait or run, by database, and the bytes of their items. */
  readonly totals: Map<string, { readonly calls: number; readonly bytes: number }>
  /** Bytes of the items of all calls that wait or run. */
  bytes: number
}

/** The calls that wait, by lane and database. In a lane, databases take turns. Calls that run count for the limits. */
export class CallQueue {
  readonly #limits: SandboxLimits
  readonly #lanes: Readonly<Record<Lane, LaneCalls>> = {
    ordinary: { waiting: new Map(), totals: new Map(), bytes: 0 },
    suspect: { waiting: new Map(), totals: new Map(), bytes: 0 },
  }
  readonly #texts = new HeldTexts()

  constructor(limits: SandboxLimits) {
    this.#limits = limits
  }

  /** The number of calls that wait. */
  get waiting(): number {
    return Object.values(this.#lanes).flatMap(({ waiting }) => [...waiting.values()])
      .reduce((total, calls) => total + calls.length, 0)
  }

  /** The databases with waiting calls, in the order of their turns. */
  databases(lane: Lane): string[] {
    return [...this.#lanes[lane].waiting.keys()]
  }

  /**
   * @param isQuick whether the call may use the bytes that are left to databases whose calls are quick
   * @throws SandboxError `overloaded`
   */
  add(call: PendingCall, isQuick: boolean): void {
    const { waitingBytesMax } = this.#limits
    const bytes = this.#lanes.ordinary.bytes + this.#lanes.suspect.bytes + this.#texts.length
    const added = call.items.length + this.#texts.added(call.called)
    checkBytes(added, bytes, waitingBytesMax * (isQuick || bytes === 0 ? 1 : 1 - 1 / bytesShare))
    this.#checkCount(call, call.lane)
    if (call.lane === 'suspect') this.#checkSuspectBytes(call)
    this.#texts.add(call.called)
    this.#count(call, 1)
    this.#queueOf(call).push(call)
  }

  /**
   * Makes the waiting calls of a function those of a suspect one. Their bytes have room already.
   *
   * @param refuse receives the calls that are too many for that lane; they wait no more, and their room is released
   */
  suspect(called: SandboxFunction, refuse: (call: PendingCall, error: SandboxError) => void): void {
    for (const call of this.#takeLikes(called)) {
      try {
        this.#checkCount(call, 'suspect')
      } catch (error) {
        this.settle(call)
        refuse(call, error as SandboxError)
        continue
      }
      this.#move(call, 'suspect')
      this.#queueOf(call).push(call)
    }
  }

  /** Moves the calls of suspect functions that have become ordinary meanwhile. */
  release(laneOf: (called: SandboxFunction) => Lane): void {
    for (const calls of this.#lanes.suspect.waiting.values()) {
      for (const call of this.#takeWaiting('suspect', calls, ({ called }) => laneOf(called) === 'ordinary')) {
        this.#move(call, 'ordinary')
        this.#queueOf(call).push(call)
      }
    }
  }

  /** Puts calls of a message back to the front of their queues. */
  putBack(calls: readonly PendingCall[], laneOf: (called: SandboxFunction) => Lane): void {
    for (const call of calls.toReversed()) {
      this.#move(call, laneOf(call.called))
      this.#queueOf(call).unshift(call)
    }
  }

  /** Returns the next call of a database. */
  peek(lane: Lane, database: string): PendingCall | undefined {
    return this.#lanes[lane].waiting.get(database)?.[0]
  }

  /**
   * Takes the calls of the next message out of the queue of a database. Its next turn is after the other databases.
   *
   * @param isAlone returns true for a call that shares no message
   */
  take(lane: Lane, database: string, isAlone: (call: PendingCall) => boolean): PendingCall[] {
    const { waiting } = this.#lanes[lane]
    const calls = waiting.get(database) ?? []
    waiting.delete(database)
    let end = 0
    let items = 0
    let bytes = 0
    for (const call of calls) {
      items += call.count
      bytes += call.items.length
      const isLast = isAlone(call)
      const isTooMuch = end >= messageCallsMax || items > messageItemsMax || bytes > messageBytesMax || isLast
      if (end > 0 && isTooMuch) break
      end++
      if (isLast) break
    }
    const taken = calls.splice(0, end)
    if (calls.length > 0) waiting.set(database, calls)
    return taken
  }

  /** Removes all waiting calls of some lanes, and returns them. */
  takeAll(...lanes: readonly Lane[]): PendingCall[] {
    return lanes.flatMap(lane => {
      const { waiting } = this.#lanes[lane]
      const calls = [...waiting.values()].flat()
      waiting.clear()
      return calls
    })
  }

  /** Releases the room of a call that was taken and has its outcome. */
  settle(call: PendingCall): void {
    this.#count(call, -1)
    this.#texts.remove(call.called)
  }

  /** @throws SandboxError `overloaded` */
  #checkCount({ called: { database } }: PendingCall, lane: Lane): void {
    const { databaseCallsMax } = this.#limits
    const { calls = 0 } = this.#lanes[lane].totals.get(database) ?? {}
    if (calls < databaseCallsMax) return
    throw new SandboxError('overloaded', `${calls} calls of functions of this database wait; the limit is ${
      databaseCallsMax}`)
  }

  /** One call of each database is always accepted, so that no database keeps the others from theirs. */
  #checkSuspectBytes({ called: { database }, items }: PendingCall): void {
    const { waitingBytesMax } = this.#limits
    const { totals, bytes } = this.#lanes.suspect
    const ofDatabase = totals.get(database)
    if (ofDatabase === undefined) return
    checkBytes(items.length, bytes, waitingBytesMax / bytesShare)
    checkBytes(items.length, ofDatabase.bytes, waitingBytesMax / databaseBytesShare)
  }

  /** Takes the waiting ordinary calls of a function out of the queue. */
  #takeLikes(called: SandboxFunction): PendingCall[] {
    const calls = this.#lanes.ordinary.waiting.get(called.database) ?? []
    return this.#takeWaiting('ordinary', calls, call => isSame(call.called, called))
  }

  /** Takes some of the waiting calls of a database out of the queue. */
  #takeWaiting(lane: Lane, calls: PendingCall[], isTaken: (call: PendingCall) => boolean): PendingCall[] {
    const taken: PendingCall[] = []
    const left: PendingCall[] = []
    for (const call of calls) (isTaken(call) ? taken : left).push(call)
    if (taken.length === 0) return taken
    const { waiting } = this.#lanes[lane]
    const { database } = taken[0]!.called
    if (left.length > 0) waiting.set(database, left)
    else waiting.delete(database)
    return taken
  }

  #move(call: PendingCall, lane: Lane): void {
    if (call.lane === lane) return
    this.#count(call, -1)
    call.lane = lane
    this.#count(call, 1)
  }

  #count({ called: { database }, lane, items }: PendingCall, change: 1 | -1): void {
    const { totals } = this.#lanes[lane]
    const { calls, bytes } = totals.get(database) ?? { calls: 0, bytes: 0 }
    if (calls + change === 0) totals.delete(database)
    else totals.set(database, { calls: calls + change, bytes: bytes + change * items.length })
    this.#lanes[lane].bytes += change * items.length
  }

  /** Returns the queue of the call's lane and database. */
  #queueOf({ called: { database }, lane }: PendingCall): PendingCall[] {
    const { waiting } = this.#lanes[lane]
    let calls = waiting.get(database)
    if (calls === undefined) waiting.set(database, calls = [])
    return calls
  }
}

/** @param added the bytes of a call @throws SandboxError `overloaded` */
function checkBytes(added: number, waiting: number, max: number): void {
  if (waiting + added <= max) return
  throw new SandboxError('overloaded', `Calls of functions with ${waiting} bytes wait; this one has ${
    added}, and the limit is ${max}`)
}
