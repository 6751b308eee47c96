/**
 * The calls of one link are counted in three classes. Each class has its own limit, so that no class can use up the
 * capacity of another: however many feeds and queries wait for changes and builds on a peer, reads, writes and calls
 * about metadata proceed.
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
   * @param describe returns the text of the error, given the limit
   * @throws ReplicaError `overloaded` when as many calls of the class are open as its limit allows
   */
  check(kind: CallClass, describe: (limit: number) => string): void {
    const limit = this.#limits[kind]
    if (this.#open[kind] >= limit) throw new ReplicaError('overloaded', describe(limit))
  }

  begin(kind: CallClass): void { this.#open[kind]++ }

  end(kind: CallClass): void { this.#open[kind]-- }
}
