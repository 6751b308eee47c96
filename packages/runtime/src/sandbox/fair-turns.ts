/** Milliseconds after a turn in which its name is waited for if it has used less time than those that wait. */
export const anticipationMs = 20

/**
 * Shares time among names that take turns: the next turn is for the name that has used the least time. A name that had
 * nothing to do begins where the others are, and does not get the time that it has left to them. This is start-time
 * fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996).
 *
 * A name whose turns are short may ask for the next one only after the last one has ended. No other name gets a turn in
 * that moment, which may be long (anticipatory scheduling: Iyer and Druschel, SOSP 2001).
 */
export class FairTurns {
  /** The time at which the turn began that was given last, as its name counts it. */
  #now = 0
  /** The time at which the next turn of a name begins, where it is later than `#now`. */
  readonly #starts = new Map<string, number>()
  /** The turn that ended last. */
  #last: { readonly name: string; readonly endedAt: number } | undefined

  /**
   * Returns the name whose turn is next; of several, the first one. Undefined when there are no names, or when none of
   * them should get a turn before `anticipationMs` have passed.
   *
   * @param names those that ask for a turn @param at monotonic time in milliseconds
   */
  next(names: readonly string[], at: number): string | undefined {
    let next: string | undefined
    for (const name of names) if (next === undefined || this.#startOf(name) < this.#startOf(next)) next = name
    if (next === undefined || this.#last === undefined) return next
    const { name, endedAt } = this.#last
    return at - endedAt < anticipationMs && this.#startOf(name) < this.#startOf(next) ? undefined : next
  }

  /** Call this when a name gets a turn. @param at monotonic time in milliseconds */
  began(name: string, at: number): void {
    // A name that was waited for uses the time of the wait, too. Otherwise its turns of no length would never end.
    if (this.#last?.name === name) {
      this.#starts.set(name, this.#startOf(name) + Math.min(anticipationMs, at - this.#last.endedAt))
    }
    this.#now = Math.max(this.#now, this.#startOf(name))
    for (const [other, start] of this.#starts) if (start <= this.#now) this.#starts.delete(other)
  }

  /** Call this when the turn has ended. @param ms what it has taken @param at monotonic time in milliseconds */
  used(name: string, ms: number, at: number): void {
    this.#starts.set(name, this.#startOf(name) + ms)
    this.#last = { name, endedAt: at }
  }

  #startOf(name: string): number {
    return this.#starts.get(name) ?? this.#now
  }
}
