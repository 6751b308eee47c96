/**
 * The steps of a run by name: faults, and what clients do. Some can be left out, to see whether the rest still fails.
 */
export class Schedule {
  /** In the order in which they were taken. */
  readonly taken: string[] = []
  readonly #only: ReadonlySet<string> | undefined

  /** @param only the steps to take; absent: all that are drawn */
  constructor(only?: ReadonlySet<string>) {
    this.#only = only
  }

  /** Whether this step is to be taken. */
  take(step: string): boolean {
    if (this.#only !== undefined && !this.#only.has(step)) return false
    this.taken.push(step)
    return true
  }
}
