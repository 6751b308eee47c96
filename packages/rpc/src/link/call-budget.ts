/**
 * Calls of one link are counted in three classes, each with a bound of its own, so that no class can use up the room of
 * another: however many changes feeds wait on a peer, it is read, written to and asked about metadata as before.
 */
import { ReplicaError } from '@sectional/core'

export type CallClass = 'data' | 'wait' | 'control'

/** The most calls of each class that may be open at a time. */
export type CallLimits = Readonly<Record<CallClass, number>>

export class CallBudget {
  readonly #limits: CallLimits
  readonly #open: Record<CallClass, number> = { data: 0, wait: 0, control: 0 }

  constructor(limits: CallLimits) { this.#limits = limits }

  /**
   * @throws ReplicaError `overloaded` when no call of the class has room; `describe` says what would have been one too
   *   many
   */
  check(kind: CallClass, describe: (limit: number) => string): void {
    const limit = this.#limits[kind]
    if (this.#open[kind] >= limit) throw new ReplicaError('overloaded', describe(limit))
  }

  begin(kind: CallClass): void { this.#open[kind]++ }

  end(kind: CallClass): void { this.#open[kind]-- }
}
