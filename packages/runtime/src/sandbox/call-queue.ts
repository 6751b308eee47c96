import type { ChildCall } from './child/sandbox-child.ts'
import { SandboxError, type SandboxFunction, type SandboxLimits } from './sandbox.ts'

/** What one message to a child may contain. A single call may exceed `messageBytesMax`. */
const messageCallsMax = 64
const messageItemsMax = 1000
const messageBytesMax = 1024 * 1024

/** The share of the bytes that is left to databases whose calls are quick. */
const quickBytesShare = 4

export interface PendingCall extends ChildCall {
  readonly bytes: number
  /** Whether the function was the cause for which a child ended lately. */
  isSuspect: boolean
  /** True when the child that ran the call ended. The call then runs once more, as the only call of a message. */
  retried: boolean
  /** @param text outcomes (`outcome-text.ts`) */
  readonly resolve: (text: string) => void
  readonly reject: (error: SandboxError) => void
}

/** The messages of other functions between two with calls of suspect functions, as long as others wait. */
const othersInRow = 16

/** The waiting calls of one database. */
interface DatabaseCalls {
  readonly suspect: PendingCall[]
  readonly others: PendingCall[]
  /** The messages of other functions since the last one of suspect functions. */
  othersTaken: number
}

/**
 * The calls that wait, by database. Databases take turns. In a database, the calls of suspect functions wait behind the
 * others, of which `othersInRow` messages at most go before them, so that a function that does not end hardly delays
 * the others. Calls that run count for the limits.
 */
export class CallQueue {
  readonly #limits: SandboxLimits
  /** The waiting calls by database, each with one at least. The database whose turn is next comes first. */
  readonly #waiting = new Map<string, DatabaseCalls>()
  /** The number of calls by database that wait or run. */
  readonly #counts = new Map<string, number>()
  /** Bytes of all calls that wait or run. */
  #bytes = 0

  constructor(limits: SandboxLimits) {
    this.#limits = limits
  }

  /** The number of calls that wait. */
  get waiting(): number {
    return [...this.#waiting.values()].reduce((total, { suspect, others }) => total + suspect.length + others.length, 0)
  }

  /** The databases with waiting calls, in the order of their turns. */
  databases(): string[] {
    return [...this.#waiting.keys()]
  }

  /**
   * @param isQuick whether the call may use the bytes that are left to databases whose calls are quick
   * @throws SandboxError `overloaded`
   */
  add(call: PendingCall, isQuick: boolean): void {
    const { databaseCallsMax } = this.#limits
    const waitingBytesMax = this.#limits.waitingBytesMax * (isQuick || this.#bytes === 0 ? 1 : 1 - 1 / quickBytesShare)
    const { database } = call.called
    const count = this.#counts.get(database) ?? 0
    if (count >= databaseCallsMax) {
      throw new SandboxError('overloaded', `${count} calls of functions of this database wait; the limit is ${
        databaseCallsMax}`)
    }
    if (this.#bytes + call.bytes > waitingBytesMax) {
      throw new SandboxError('overloaded', `Calls of functions with ${this.#bytes} bytes wait; this one has ${
        call.bytes}, and the limit is ${waitingBytesMax}`)
    }
    this.#counts.set(database, count + 1)
    this.#bytes += call.bytes
    this.#queueOf(call).push(call)
  }

  /** Makes the waiting calls of a function those of a suspect one. */
  suspect({ database, source }: SandboxFunction): void {
    const calls = this.#waiting.get(database)
    if (calls === undefined) return
    for (const call of calls.others.splice(0)) {
      call.isSuspect = call.called.source === source
      this.#queueOf(call).push(call)
    }
  }

  /** Puts calls of a message back to the front of their queues. */
  putBack(calls: readonly PendingCall[]): void {
    for (const call of calls.toReversed()) this.#queueOf(call).unshift(call)
  }

  /** Returns the next call of a database. */
  peek(database: string): PendingCall | undefined {
    const calls = this.#waiting.get(database)
    return calls && nextOf(calls)[0]
  }

  /** Takes the calls of the next message out of the queue of a database. Its next turn is after the other databases. */
  take(database: string): PendingCall[] {
    const calls = this.#waiting.get(database)
    if (calls === undefined) return []
    const queue = nextOf(calls)
    this.#waiting.delete(database)
    let end = 0
    let items = 0
    let bytes = 0
    for (const call of queue) {
      items += call.count
      bytes += call.bytes
      const isTooMuch = end >= messageCallsMax || items > messageItemsMax || bytes > messageBytesMax || call.retried
      if (end > 0 && isTooMuch) break
      end++
      if (call.retried) break
    }
    const taken = queue.splice(0, end)
    calls.othersTaken = queue === calls.suspect ? 0 : calls.othersTaken + 1
    if (calls.suspect.length + calls.others.length > 0) this.#waiting.set(database, calls)
    return taken
  }

  /** Removes all waiting calls and returns them. */
  takeAll(): PendingCall[] {
    const calls = [...this.#waiting.values()].flatMap(({ suspect, others }) => [...suspect, ...others])
    this.#waiting.clear()
    return calls
  }

  /** Releases the room of a call that was taken and has its outcome. */
  settle({ called: { database }, bytes }: PendingCall): void {
    this.#bytes -= bytes
    const count = (this.#counts.get(database) ?? 1) - 1
    if (count === 0) this.#counts.delete(database)
    else this.#counts.set(database, count)
  }

  #queueOf({ called: { database }, isSuspect }: PendingCall): PendingCall[] {
    let calls = this.#waiting.get(database)
    if (calls === undefined) this.#waiting.set(database, calls = { suspect: [], others: [], othersTaken: 0 })
    return isSuspect ? calls.suspect : calls.others
  }
}

/** Returns the queue of the next message. */
function nextOf({ suspect, others, othersTaken }: DatabaseCalls): PendingCall[] {
  return others.length === 0 || othersTaken >= othersInRow && suspect.length > 0 ? suspect : others
}
