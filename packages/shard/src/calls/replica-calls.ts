import { ReplicaError } from '@sectional/core'
import type { CallContext } from '@sectional/core'
import type { Clock } from '@sectional/runtime'
import type { DamagedRecordError } from '../records/damaged-record.ts'
import { checkCall, damageIn, toReplicaError, withinDeadline } from './call-guard.ts'

/**
 * Runs the calls of one replica. It refuses a call when its deadline has passed, when the replica is closed, or when
 * the call names another incarnation of the replica. It bounds the time of the call, converts errors into those of the
 * contract, and reports damaged records.
 */
export class ReplicaCalls {
  /** Identifies this incarnation of the replica. */
  readonly history: string
  readonly #clock: Clock
  readonly #onDamage: (error: DamagedRecordError) => void
  #refusal: ReplicaError | undefined

  constructor(history: string, clock: Clock, onDamage: (error: DamagedRecordError) => void) {
    this.history = history
    this.#clock = clock
    this.#onDamage = onDamage
  }

  /** The error of every call after the replica was closed; undefined while it is open. It never changes once set. */
  get refusal(): ReplicaError | undefined { return this.#refusal }

  /**
   * After this, every call and the next page of every scan is rejected with `refusal`. Only the first refusal counts.
   */
  refuse(refusal: ReplicaError): void {
    this.#refusal ??= refusal
  }

  /** @throws the refusal when the replica is closed */
  assertOpen(): void {
    if (this.#refusal !== undefined) throw this.#refusal
  }

  /** @throws ReplicaError when the call is refused */
  check(context: CallContext): void {
    checkCall(context)
    this.assertOpen()
    if (context.history === undefined || context.history === this.history) return
    throw new ReplicaError('other_history', `the replica has history ${this.history}, not ${context.history}`)
  }

  /** Runs a call that may write. A write that became durable counts even when the replica is closed meanwhile. */
  async answer<T>(context: CallContext, work: () => T | Promise<T>): Promise<T> {
    try {
      this.check(context)
      const answer = work()
      return answer instanceof Promise ? await withinDeadline(this.#clock, context, answer) : answer
    } catch (error) {
      throw this.#failure(error)
    }
  }

  /** Runs a read. A read that is answered synchronously needs no timer. */
  async read<T>(context: CallContext, work: () => T | Promise<T>): Promise<T> {
    try {
      this.check(context)
      const answer = work()
      if (!(answer instanceof Promise)) return answer
      const waitedFor = await withinDeadline(this.#clock, context, answer)
      // The keys of a dropped shard can be removed during the read, so the result counts only if the replica is still
      // open.
      this.assertOpen()
      return waitedFor
    } catch (error) {
      throw this.#failure(error)
    }
  }

  /** Runs a read that is answered at once. */
  readNow<T>(context: CallContext, work: () => T): T {
    try {
      this.check(context)
      return work()
    } catch (error) {
      throw this.#failure(error)
    }
  }

  /** Runs a scan. The call's timeout bounds the wait for each page, not the time that the reader takes. */
  async *pages<Row>(context: CallContext, scan: () => AsyncGenerator<readonly Row[]>): AsyncGenerator<readonly Row[]> {
    let waiting = false
    let pages: AsyncGenerator<readonly Row[]> | undefined
    try {
      pages = scan()
      for (;;) {
        this.check(context)
        waiting = true
        const next = await withinDeadline(this.#clock, context, pages.next())
        waiting = false
        this.assertOpen()
        if (next.done) return
        yield next.value
      }
    } catch (error) {
      throw this.#failure(error)
    } finally {
      const closed = pages?.return(undefined)
      // A read that outlived its deadline closes when it ends; the caller already received the timeout.
      if (waiting) closed?.catch(() => {})
      else await closed
    }
  }

  #failure(error: unknown): unknown {
    if (this.#refusal !== undefined) return this.#refusal
    const damage = damageIn(error)
    if (damage !== undefined) this.#onDamage(damage)
    return toReplicaError(error)
  }
}
