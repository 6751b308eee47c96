import type { Random } from './random.ts'

/**
 * Pseudo-random numbers by sfc32 ("small fast counting", Chris Doty-Humphrey, PractRand 2013): 128 bits of state and a
 * period of at least 2^32 from any seed. Must not be used for secrets.
 */
export class SeededRandom implements Random {
  #a: number
  #b: number
  #c: number
  #counter = 1

  constructor(seed: number) {
    this.#a = 0
    this.#b = Math.floor(seed / 0x1_0000_0000) | 0
    this.#c = seed | 0
    for (let round = 0; round < 15; round++) this.#next()
  }

  bytes(length: number): Uint8Array {
    const bytes = new Uint8Array(length)
    for (let at = 0; at < length; at += 4) {
      const word = this.#next()
      for (let byte = 0; byte < 4 && at + byte < length; byte++) bytes[at + byte] = word >>> (8 * byte)
    }
    return bytes
  }

  fraction(): number {
    const high = this.#next() >>> 5
    const low = this.#next() >>> 6
    return (high * 0x400_0000 + low) / 0x20_0000_0000_0000
  }

  #next(): number {
    const result = (this.#a + this.#b + this.#counter) | 0
    this.#counter = (this.#counter + 1) | 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) | 0
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + result) | 0
    return result >>> 0
  }
}
