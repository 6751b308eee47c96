import { isSame, type Lane } from './call-history.ts'
import type { ChildCall } from './child/sandbox-child.ts'
import { SandboxError, type SandboxFunction, type SandboxLimits } from './sandbox.ts'

/** What one message to a child may contain. A single call may exceed `messageBytesMax`. */
const messageCallsMax = 64
const messageItemsMax = 1000
const messageBytesMax = 1024 * 1024

/** The share of the bytes that is left to databases whose calls are quick, and that calls of suspects may use. */
const bytesShare = 4

export interface PendingCall extends ChildCall {
  readonly bytes: number
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
  /** The number of calls by database that wait or run. */
  readonly counts: Map<string, number>
  /** Bytes of all calls that wait or run. */
  bytes: number
}

/** The calls that wait, by lane and database. In a lane, databases take turns. Calls that run count for the limits. */
export class CallQueue {
  readonly #limits: SandboxLimits
  readonly #lanes: Readonly<Record<Lane, LaneCalls>> = {
    ordinary: { waiting: new Map(), counts: new Map(), bytes: 0 },
    suspect: { waiting: new Map(), counts: new Map(), bytes: 0 },
  }

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
    const bytes = this.#lanes.ordinary.bytes + this.#lanes.suspect.bytes
    checkBytes(call, bytes, waitingBytesMax * (isQuick || bytes === 0 ? 1 : 1 - 1 / bytesShare))
    this.#checkLane(call, call.lane)
    this.#count(call, 1)
    this.#queueOf(call).push(call)
  }

  /**
   * Makes the waiting calls of a function those of a suspect one.
   *
   * @param refuse receives the calls for which that lane has no room; they wait no more, and their room is released
   */
  suspect(called: SandboxFunction, refuse: (call: PendingCall, error: SandboxError) => void): void {
    for (const call of this.#takeLikes(called)) {
      try {
        this.#checkLane(call, 'suspect')
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
    const { waiting } = this.#lanes.suspect
    for (const [database, calls] of waiting) {
      if (laneOf(calls[0]!.called) === 'suspect') continue
      waiting.delete(database)
      for (const call of calls) {
        this.#move(call, laneOf(call.called))
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
      bytes += call.bytes
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
  }

  /** @throws SandboxError `overloaded` */
  #checkLane(call: PendingCall, lane: Lane): void {
    const { databaseCallsMax, waitingBytesMax } = this.#limits
    const { counts, bytes } = this.#lanes[lane]
    const count = counts.get(call.called.database) ?? 0
    if (count >= databaseCallsMax) {
      throw new SandboxError('overloaded', `${count} calls of functions of this database wait; the limit is ${
        databaseCallsMax}`)
    }
    if (lane === 'suspect' && bytes > 0) checkBytes(call, bytes, waitingBytesMax / bytesShare)
  }

  /** Takes the waiting ordinary calls of a function out of the queue. */
  #takeLikes(called: SandboxFunction): PendingCall[] {
    const { waiting } = this.#lanes.ordinary
    const calls = waiting.get(called.database) ?? []
    const others = calls.filter(call => !isSame(call.called, called))
    if (others.length > 0) waiting.set(called.database, others)
    else waiting.delete(called.database)
    return calls.filter(call => isSame(call.called, called))
  }

  #move(call: PendingCall, lane: Lane): void {
    if (call.lane === lane) return
    this.#count(call, -1)
    call.lane = lane
    this.#count(call, 1)
  }

  #count({ called: { database }, lane, bytes }: PendingCall, change: 1 | -1): void {
    const calls = this.#lanes[lane]
    const count = (calls.counts.get(database) ?? 0) + change
    if (count === 0) calls.counts.delete(database)
    else calls.counts.set(database, count)
    calls.bytes += change * bytes
  }

  /** Returns the queue of the call's lane and database. */
  #queueOf({ called: { database }, lane }: PendingCall): PendingCall[] {
    const { waiting } = this.#lanes[lane]
    let calls = waiting.get(database)
    if (calls === undefined) waiting.set(database, calls = [])
    return calls
  }
}

function checkBytes({ bytes }: PendingCall, waiting: number, max: number): void {
  if (waiting + bytes <= max) return
  throw new SandboxError('overloaded', `Calls of functions with ${waiting} bytes wait; this one has ${
    bytes}, and the limit is ${max}`)
}
