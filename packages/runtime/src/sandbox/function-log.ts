import type { Clock } from '../clock/clock.ts'
import type { Log } from '../log/log.ts'
import type { SandboxFunction } from './sandbox.ts'

/** Number of lines of one call, and length of one line, that are kept. */
const callLinesMax = 100
const lineLengthMax = 1000
/** Length of the lines of one database, and of the node, that are written in one second. */
const databaseLengthMax = 16 * 1024
const nodeLengthMax = 256 * 1024
/** What a line counts in addition to its text, for its time and fields. */
const lineCost = 200
const windowMs = 1000

/** Writes what functions log into the log of the node, as much as the limits of a second allow. */
export class FunctionLog {
  readonly #log: Log
  readonly #clock: Clock
  /** Monotonic time at which the second began that is counted. */
  #begin = -Infinity
  /** The counted length by database; the sum is `#total`. */
  readonly #lengths = new Map<string, number>()
  #total = 0
  /** Number of lines that were not written since the last written one. */
  #leftOut = 0

  constructor(log: Log, clock: Clock) {
    this.#log = log
    this.#clock = clock
  }

  /** @param lines of one call */
  write({ database, designDocument }: SandboxFunction, lines: readonly string[]): void {
    if (lines.length === 0) return
    const now = this.#clock.monotonic()
    if (now - this.#begin >= windowMs) this.#beginSecond(now)
    for (const line of lines) {
      const cost = line.length + lineCost
      const used = (this.#lengths.get(database) ?? 0) + cost
      if (used > databaseLengthMax || this.#total + cost > nodeLengthMax) {
        this.#leftOut++
        continue
      }
      this.#lengths.set(database, used)
      this.#total += cost
      const leftOut = this.#leftOut > 0 ? { leftOut: this.#leftOut } : {}
      this.#leftOut = 0
      this.#log.info({ database, designDocument, line, ...leftOut }, 'A function of a design document logged a line')
    }
  }

  #beginSecond(now: number): void {
    this.#begin = now
    this.#lengths.clear()
    this.#total = 0
  }
}

/** Returns the first lines of a call, each cut. A hostile function can return more and longer ones than `log` makes. */
export function boundedLines(lines: readonly string[]): readonly string[] {
  return lines.slice(0, callLinesMax).map(line => line.slice(0, lineLengthMax))
}
