/**
 * The steps of a run by name: faults, and actions of clients. Steps can be omitted, to find out whether the rest still
 * fails.
 */
export class Schedule {
  /** Names of the steps that were taken, in order. */
  readonly taken: string[] = []
  readonly #only: ReadonlySet<string> | undefined

  /** @param only names of the steps to take; absent: all that are drawn */
  constructor(only?: ReadonlySet<string>) {
    this.#only = only
  }

  /** Returns whether this step must be taken, and records it. */
  take(step: string): boolean {
    if (this.#only !== undefined && !this.#only.has(step)) return false
    this.taken.push(step)
    return true
  }
}
