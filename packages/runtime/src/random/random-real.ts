import { randomFillSync } from 'node:crypto'
import type { Random } from './random.ts'

/** Small requests are cut from a pool of this size, so that one system call serves many requests. */
const poolBytes = 4096
const pooledBytesMax = 256

/** The cryptographic randomness of the operating system. */
export class RealRandom implements Random {
  readonly #pool = Buffer.alloc(poolBytes)
  #used = poolBytes

  bytes(length: number): Uint8Array {
    if (length > pooledBytesMax) return randomFillSync(new Uint8Array(length))
    return new Uint8Array(this.#take(length))
  }

  fraction(): number {
    const bytes = this.#take(7)
    return (bytes.readUIntBE(0, 6) * 32 + (bytes.readUInt8(6) & 31)) / 2 ** 53
  }

  /** Takes bytes from the pool. Each byte is used once and then erased, so that the pool reveals no earlier bytes. */
  #take(length: number): Buffer {
    if (this.#used + length > poolBytes) {
      randomFillSync(this.#pool)
      this.#used = 0
    }
    const taken = Buffer.from(this.#pool.subarray(this.#used, this.#used + length))
    this.#pool.fill(0, this.#used, this.#used + length)
    this.#used += length
    return taken
  }
}
