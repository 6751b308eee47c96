/** Number of lines that are kept for the report of a failure. */
const recentLinesMax = 400
/**
 * A line of a stack trace, also in JSON. The hash leaves them out, because they depend on the place of the checkout, on
 * who started the simulation, and on whether it captures stack traces at all.
 */
const stackFrame = /(?:\n|\\n) {4}at [^\n\\"]*/g

export interface TraceOptions {
  /** Called with each line that is meant for people, which excludes single events. */
  readonly onLine?: (line: string) => void
}

/**
 * A running hash of everything that happens: events, log lines, operations and answers. The same seed and commit have
 * the same hash. The newest lines are also kept as text.
 */
export class Trace {
  readonly #onLine: ((line: string) => void) | undefined
  readonly #recent: string[] = []
  #next = 0
  #low = 0x811c9dc5
  #high = 0x9e3779b9
  #events = 0

  constructor(options: TraceOptions = {}) {
    this.#onLine = options.onLine
  }

  /** The hash in hexadecimal: two 32-bit lanes of multiply and rotate (after MurmurHash3, Appleby 2011). */
  get hash(): string {
    return [this.#low, this.#high].map(lane => (lane >>> 0).toString(16).padStart(8, '0')).join('')
  }

  get events(): number {
    return this.#events
  }

  event(timeMs: number, label: string): void {
    this.#events++
    this.#mixNumber(timeMs * 1000)
    this.#mix(label)
  }

  line(timeMs: number, text: string): void {
    const line = `${(timeMs / 1000).toFixed(6).padStart(11)} ${text}`
    this.#mix(line.includes('    at ') ? line.replaceAll(stackFrame, '') : line)
    this.#recent[this.#next++ % recentLinesMax] = line
    this.#onLine?.(line)
  }

  /** Returns the newest `count` lines, oldest first. */
  recent(count: number): string[] {
    const from = Math.max(0, this.#next - Math.min(count, recentLinesMax))
    return Array.from(
      { length: this.#next - from }, (_, index) => this.#recent[(from + index) % recentLinesMax] as string,
    )
  }

  #mix(text: string): void {
    for (let at = 0; at < text.length; at++) this.#mixWord(text.charCodeAt(at))
  }

  #mixNumber(number: number): void {
    this.#mixWord(number | 0)
    this.#mixWord(Math.floor(number / 0x1_0000_0000) | 0)
  }

  #mixWord(word: number): void {
    const mixed = Math.imul(word ^ this.#high, 0xcc9e2d51)
    this.#low = Math.imul(((this.#low ^ mixed) << 13) | ((this.#low ^ mixed) >>> 19), 5) + 0x6b64e654 | 0
    this.#high = Math.imul(this.#high ^ this.#low, 0x1b873593) ^ (this.#high >>> 15)
  }
}
