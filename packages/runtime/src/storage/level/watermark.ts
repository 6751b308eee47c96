import { WatermarkFile } from './watermark-file.ts'

/** When a store writes its watermark: with each batch, or with one of the batches of each interval. */
export class Watermark {
  /** Asks for a batch, since none has come after the one that is not covered. */
  onDue: () => void = () => {}
  readonly #file: WatermarkFile
  readonly #intervalMs: number
  #number: number
  #uncovered = false
  #due = false
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> = Promise.resolve()

  private constructor(file: WatermarkFile, number: number, intervalMs: number) {
    this.#file = file
    this.#number = number
    this.#intervalMs = intervalMs
  }

  /** @param number what the store holds @param intervalMs milliseconds; 0: with each batch */
  static async open(path: string, number: number, intervalMs: number): Promise<Watermark> {
    const file = await WatermarkFile.open(path)
    return new Watermark(file, Math.max(number, await WatermarkFile.read(path) ?? 0), intervalMs)
  }

  /** The number that the batch which is about to be written has to hold; undefined: none. */
  next(): number | undefined {
    return this.#intervalMs === 0 || this.#due ? this.#number + 1 : undefined
  }

  /** The number of the last batch of all; undefined: everything is covered. */
  last(): number | undefined {
    clearTimeout(this.#timer)
    return this.#uncovered ? this.#number + 1 : undefined
  }

  /** A batch has become durable. Resolves when it may be acknowledged. @param mark what it held */
  async written(mark: number | undefined): Promise<void> {
    if (mark === undefined) return this.#arm()
    this.#number = mark
    this.#due = false
    this.#uncovered = false
    const writing = this.#writing.then(() => this.#file.write(mark))
    this.#writing = writing.catch(() => {})
    // Otherwise it was not promised that this batch is covered; a later one is.
    if (this.#intervalMs === 0) await writing
  }

  /** The next batch holds the number, whenever it comes. */
  demand(): void {
    this.#due = true
  }

  /** Resolves when the file has what the batches that are durable had. */
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

/** 0: there is none, or it cannot be read. */
export function readNumber(bytes: Uint8Array | undefined): number {
  return bytes?.length === numberBytes ? Number(Buffer.from(bytes).readBigUInt64BE()) : 0
}
