import type { Clock } from './clock.ts'

/** Milliseconds of long work in one turn of the event loop. */
const defaultSliceMs = 8
/** The same for work in the background. */
const backgroundSliceMs = 1

/**
 * Divides long work of one node into slices, so that heartbeats, consensus and other requests are served in between.
 * All long work of a node shares one instance and together takes about one slice per turn of the event loop. Waiting
 * callers continue in the order in which they came, one in each turn.
 */
export class Turns {
  readonly #clock: Clock
  readonly #sliceMs: number
  #background: Turns | undefined
  readonly #waiting: (() => void)[] = []
  /** The monotonic time at which the slice of this turn ends; undefined when this turn has no slice yet. */
  #sliceEnd: number | undefined

  /** @param sliceMs milliseconds of a slice */
  constructor(clock: Clock, sliceMs = defaultSliceMs) {
    this.#clock = clock
    this.#sliceMs = sliceMs
  }

  /**
   * The turns of work that must not delay requests, such as builds of indexes. Together it takes about one short slice
   * per turn of the event loop: nearly all time while nothing else happens, and a small share, but never nothing, while
   * many requests are served.
   */
  get background(): Turns {
    return this.#background ??= new Turns(this.#clock, backgroundSliceMs)
  }

  /**
   * Returns true when the slice of this turn is used up; the caller should then await `next`. Call it between small
   * pieces of work.
   */
  due(): boolean {
    const now = this.#clock.monotonic()
    if (this.#sliceEnd === undefined) {
      this.#sliceEnd = now + this.#sliceMs
      this.#clock.setImmediate(() => { this.#sliceEnd = undefined })
    }
    return now >= this.#sliceEnd
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

  #await(): void {
    this.#clock.setImmediate(() => {
      this.#sliceEnd = this.#clock.monotonic() + this.#sliceMs
      const resume = this.#waiting.shift()
      if (this.#waiting.length > 0) this.#await()
      // The slice ends with this turn, whether or not it was used up.
      else this.#clock.setImmediate(() => { if (this.#waiting.length === 0) this.#sliceEnd = undefined })
      resume?.()
    })
  }
}
