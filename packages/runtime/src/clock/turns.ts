import type { Clock } from './clock.ts'

/** Milliseconds of long work in one turn of the event loop. */
const defaultSliceMs = 8
/** The same for work in the background. */
const backgroundSliceMs = 1
/** Work in the background then leaves to other work this many times what its last slice took. */
const backgroundRest = 3
/** When the event loop was away for fewer milliseconds than this, there was no other work. */
const quietMs = 0.1
/**
 * A slice that began after a rest adds two to a counter, and one that began because there was no other work takes one
 * from it. The counter stays between zero and twice this number, and above this number there is much other work.
 */
const busyAbove = 10
/** The counter is valid for this many milliseconds after a rest, because it does not change while no caller waits. */
const busyMs = 200

/**
 * Divides long work of one node into slices, so that heartbeats, consensus and other requests are served in between.
 * All long work of a node shares one instance and together takes about one slice per turn of the event loop. Waiting
 * callers continue in the order in which they came, one in each turn.
 */
export class Turns {
  readonly #clock: Clock
  readonly #sliceMs: number
  readonly #rest: number
  #background: Turns | undefined
  readonly #waiting: (() => void)[] = []
  /** The monotonic time at which the slice of this turn ends; undefined when this turn has no slice yet. */
  #sliceEnd: number | undefined
  /** When the last slice began, and when its work was last seen. */
  #begunAt = 0
  #usedUntil = 0
  /** When the event loop last came back to this object. */
  #seenAt = -Infinity
  /** How many slices had to rest lately (`busyAbove`), and when the last of them began. */
  #busy = 0
  #restedAt = -Infinity

  /**
   * @param sliceMs milliseconds of a slice
   * @param rest a slice begins only after other work has taken this many times what the slice before took, or when
   * there is no other work
   */
  constructor(clock: Clock, sliceMs = defaultSliceMs, rest = 0) {
    this.#clock = clock
    this.#sliceMs = sliceMs
    this.#rest = rest
  }

  /**
   * The turns of work that must not delay requests, such as builds of indexes. Its slices are short, and pauses follow
   * them while there is other work. Together it takes nearly all time while nothing else happens, and about a quarter,
   * but never nothing, while many requests are served.
   */
  get background(): Turns {
    return this.#background ??= new Turns(this.#clock, backgroundSliceMs, backgroundRest)
  }

  /** Whether other work has lately taken most of the time of the event loop while callers of this object waited. */
  get isBusy(): boolean {
    return this.#busy > busyAbove && this.#clock.monotonic() - this.#restedAt < busyMs
  }

  /**
   * Returns true when the slice of this turn is used up; the caller should then await `next`. Call it between small
   * pieces of work.
   */
  due(): boolean {
    const now = this.#clock.monotonic()
    if (this.#sliceEnd === undefined) {
      if (!this.#isRested(now)) return true
      this.#begin(now)
      this.#clock.setImmediate(() => { this.#sliceEnd = undefined })
    }
    const end = this.#sliceEnd!
    this.#seenAt = now
    // What is behind the end may have been other work, or a pause of the process.
    this.#usedUntil = Math.min(now, end)
    return now >= end
  }

  /** Resolves in a later turn of the event loop, after the callers that waited earlier. */
  next(): Promise<void> {
    return new Promise(resolve => {
      this.#waiting.push(resolve)
      if (this.#waiting.length === 1) this.#await()
    })
  }

  /** Waits for a later turn if the slice of this turn is used up or other callers already wait. */
  async pause(): Promise<void> {
    if (this.#waiting.length > 0 || this.due()) await this.next()
  }

  /** Runs a generator that yields between its pieces of work. A piece should take less than a slice. */
  async run<Result>(work: Generator<void, Result>): Promise<Result> {
    for (;;) {
      const step = work.next()
      if (step.done === true) return step.value
      if (this.due()) await this.next()
    }
  }

  /** Returns the results of `work` for each item, in order. The work for one item should take less than a slice. */
  async map<Item, Result>(items: readonly Item[], work: (item: Item, index: number) => Result): Promise<Result[]> {
    const results = new Array<Result>(items.length)
    for (const [index, item] of items.entries()) {
      results[index] = work(item, index)
      if (this.due()) await this.next()
    }
    return results
  }

  #isRested(now: number): boolean {
    return now - this.#usedUntil >= this.#rest * (this.#usedUntil - this.#begunAt)
  }

  #begin(now: number): void {
    this.#begunAt = this.#usedUntil = now
    this.#sliceEnd = now + this.#sliceMs
  }

  #await(): void {
    this.#clock.setImmediate(() => {
      const now = this.#clock.monotonic()
      const isQuiet = now - this.#seenAt < quietMs
      this.#seenAt = now
      if (!isQuiet && !this.#isRested(now)) {
        this.#sliceEnd = undefined
        return this.#await()
      }
      if (!isQuiet) this.#restedAt = now
      this.#busy = isQuiet ? Math.max(0, this.#busy - 1) : Math.min(2 * busyAbove, this.#busy + 2)
      this.#begin(now)
      const resume = this.#waiting.shift()
      if (this.#waiting.length > 0) this.#await()
      // The slice ends with this turn, whether or not it was used up.
      else this.#clock.setImmediate(() => { if (this.#waiting.length === 0) this.#sliceEnd = undefined })
      resume?.()
    })
  }
}
