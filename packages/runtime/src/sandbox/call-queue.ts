import type { ChildCall } from './child/sandbox-child.ts'
import { SandboxError, type SandboxLimits } from './sandbox.ts'

/** What one message to a child may contain. A single call may exceed `messageBytesMax`. */
const messageCallsMax = 64
const messageItemsMax = 1000
const messageBytesMax = 1024 * 1024

/** The share of the bytes that is left to databases whose calls are quick. */
const quickBytesShare = 4

export interface PendingCall extends ChildCall {
  readonly bytes: number
  /** True when the child that ran the call ended. The call then runs once more, as the only call of a message. */
  retried: boolean
  /** @param text outcomes (`outcome-text.ts`) */
  readonly resolve: (text: string) => void
  readonly reject: (error: SandboxError) => void
}

/** The calls that wait, in one queue for each database. Databases take turns. Calls that run count for the limits. */
export class CallQueue {
  readonly #limits: SandboxLimits
  /** The waiting calls by database; no queue is empty. The database whose turn is next comes first. */
  readonly #waiting = new Map<string, PendingCall[]>()
  /** The number of calls by database that wait or run. */
  readonly #counts = new Map<string, number>()
  /** Bytes of all calls that wait or run. */
  #bytes = 0

  constructor(limits: SandboxLimits) {
    this.#limits = limits
  }

  /** The number of calls that wait. */
  get waiting(): number {
    return [...this.#waiting.values()].reduce((total, calls) => total + calls.length, 0)
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
    this.#queueOf(database).push(call)
  }

  /** Puts calls back to the front of their database's queue. */
  putBack(calls: readonly PendingCall[]): void {
    const [first] = calls
    if (first !== undefined) this.#queueOf(first.called.database).unshift(...calls)
  }

  /** Returns the next call of a database. */
  peek(database: string): PendingCall | undefined {
    return this.#waiting.get(database)?.[0]
  }

  /** Takes the calls of the next message out of the queue of a database. Its next turn is after the other databases. */
  take(database: string): PendingCall[] {
    const queue = this.#waiting.get(database) ?? []
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
    if (queue.length > 0) this.#waiting.set(database, queue)
    return taken
  }

  /** Removes all waiting calls and returns them. */
  takeAll(): PendingCall[] {
    const calls = [...this.#waiting.values()].flat()
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

  #queueOf(database: string): PendingCall[] {
    const known = this.#waiting.get(database)
    if (known !== undefined) return known
    const queue: PendingCall[] = []
    this.#waiting.set(database, queue)
    return queue
  }
}
