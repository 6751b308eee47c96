import { KeyBytes } from './key-bytes.ts'

export const commonWeight = 0x500
const commonLow = commonWeight >>> 8

/**
 * The secondary or tertiary weights of a string in a sort key. Most weights are the common one. A run of them is
 * written as one byte: low values if a lower weight or the end follows, such that a longer run is greater, and high
 * values if a higher weight follows, such that a longer run is less.
 */
export class WeightLevel {
  readonly #bytes = new KeyBytes()
  readonly #runMax: number
  #common = 0

  /** @param runMax longest run of common weights that one byte denotes */
  constructor(runMax: number) {
    this.#runMax = runMax
  }

  clear(): void {
    this.#bytes.clear()
    this.#common = 0
  }

  addCommon(): void {
    this.#common++
  }

  /** @param weight not 0 and not the common weight */
  add(weight: number): void {
    this.#endRun(weight < commonWeight)
    this.#bytes.pushWeight16(weight)
  }

  /** Appends the weights to a key. */
  finish(key: KeyBytes): void {
    this.#endRun(true)
    key.append(this.#bytes)
  }

  #endRun(isLow: boolean): void {
    if (this.#common === 0) return
    let left = this.#common - 1
    this.#common = 0
    const middle = commonLow + this.#runMax - 1
    for (; left >= this.#runMax; left -= this.#runMax) this.#bytes.push(middle)
    this.#bytes.push(isLow ? commonLow + left : commonLow + 2 * (this.#runMax - 1) - left)
  }
}
