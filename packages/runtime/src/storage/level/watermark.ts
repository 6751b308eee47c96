import { WatermarkFile } from './watermark-file.ts'

/** Decides when a store writes its watermark: with each batch, or with one batch of each interval. */
export class Watermark {
  /** Requests a batch, because no further batch has come after one that the watermark does not cover. */
  onDue: () => void = () => {}
  readonly #file: WatermarkFile
  readonly #intervalMs: number
  /** The highest number that a durable batch contains. */
  #number: number
  /** True when a batch became durable after the last one that contains a number. */
  #uncovered = false
  /** True when the next batch must contain the next number. */
  #due = false
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> = Promise.resolve()

  private constructor(file: WatermarkFile, number: number, intervalMs: number) {
    this.#file = file
    this.#number = number
    this.#intervalMs = intervalMs
  }

  /** @param number the watermark in the store @param intervalMs milliseconds; 0 writes the watermark with each batch */
  static async open(path: string, number: number, intervalMs: number): Promise<Watermark> {
    const file = await WatermarkFile.open(path)
    return new Watermark(file, Math.max(number, await WatermarkFile.read(path) ?? 0), intervalMs)
  }

  /** Returns the watermark that the next batch must contain; undefined when it needs none. */
  next(): number | undefined {
    return this.#intervalMs === 0 || this.#due ? this.#number + 1 : undefined
  }

  /** Returns the watermark of the very last batch; undefined when the watermark covers all batches. */
  last(): number | undefined {
    clearTimeout(this.#timer)
    return this.#uncovered ? this.#number + 1 : undefined
  }

  /**
   * Call this when a batch is durable. Resolves when the batch may be acknowledged. @param mark the watermark in the
   * batch
   */
  async written(mark: number | undefined): Promise<void> {
    if (mark === undefined) return this.#arm()
    this.#number = mark
    this.#due = false
    this.#uncovered = false
    const writing = this.#writing.then(() => this.#file.write(mark))
    this.#writing = writing.catch(() => {})
    // With an interval, this batch need not be covered before it is acknowledged; a later batch covers it.
    if (this.#intervalMs === 0) await writing
  }

  /** Makes the next batch contain the watermark, even before the interval ends. */
  demand(): void {
    this.#due = true
  }

  /** Resolves when the file contains the watermarks of all durable batches. */
  settled(): Promise<void> {
    return this.#writing
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer)
    await this.#writing
    await this.#file.close()
  }

  #arm(): void {
    this.#uncovered = true
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#due = this.#uncovered
      if (this.#due) this.onDue()
    }, this.#intervalMs).unref()
  }
}

const numberBytes = 8

export function encodeNumber(number: number): Uint8Array {
  const bytes = Buffer.alloc(numberBytes)
  bytes.writeBigUInt64BE(BigInt(number))
  return bytes
}

/** Returns 0 when there is no number or it cannot be read. */
export function readNumber(bytes: Uint8Array | undefined): number {
  return bytes?.length === numberBytes ? Number(Buffer.from(bytes).readBigUInt64BE()) : 0
}
