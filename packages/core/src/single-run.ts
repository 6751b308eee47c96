/**
 * Work that runs at most once at a time. A request during a run causes another run after it. A run ends in the same
 * turn in which it looks for further requests, so no request is lost between the two.
 */
export class SingleRun {
  readonly #work: () => Promise<void>
  #requested = false
  #isRunning = false
  #running: Promise<void> | undefined

  /** @param work does everything that was requested so far; it must not reject */
  constructor(work: () => Promise<void>) {
    this.#work = work
  }

  /** Resolves when the current run, and the runs that follow it, have ended; undefined when nothing runs. */
  get running(): Promise<void> | undefined { return this.#running }

  /** Starts a run now or, while one is running, after it. */
  request(): void {
    this.#requested = true
    if (this.#isRunning) return
    this.#isRunning = true
    this.#running = this.#run()
  }

  async #run(): Promise<void> {
    try {
      while (this.#requested) {
        this.#requested = false
        await this.#work()
      }
    } finally {
      this.#isRunning = false
      this.#running = undefined
    }
  }
}
