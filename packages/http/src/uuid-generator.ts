/** Identifiers for documents and requests. */
import { asBuffer } from '@sectional/core'
import type { Random } from '@sectional/runtime'

const incrementMax = 4093
/** The counter starts anew, with a new prefix, beyond this. */
const counterMax = 0xfff000

/**
 * CouchDB's `sequential` algorithm: 26 random hex digits, then a 6 digit counter that grows by random
 * steps, so that ids of one node are nearly sorted and unguessable neighbours do not collide.
 */
export class UuidGenerator {
  readonly #random: Random
  #prefix = ''
  #counter = counterMax + 1

  constructor(random: Random) {
    this.#random = random
  }

  next(): string {
    if (this.#counter > counterMax) {
      this.#prefix = asBuffer(this.#random.bytes(13)).toString('hex')
      this.#counter = 0
    }
    this.#counter += 1 + Math.floor(this.#random.fraction() * incrementMax)
    return this.#prefix + this.#counter.toString(16).padStart(6, '0')
  }
}

const requestIdBytes = 5
const requestIdBatch = 256

/** Request ids of 10 hex digits; randomness is drawn in batches because one draw costs as much as the rest of a route. */
export class RequestIdGenerator {
  readonly #random: Random
  #digits = ''
  #used = 0

  constructor(random: Random) {
    this.#random = random
  }

  next(): string {
    if (this.#used >= this.#digits.length) {
      this.#digits = asBuffer(this.#random.bytes(requestIdBytes * requestIdBatch)).toString('hex')
      this.#used = 0
    }
    const begin = this.#used
    this.#used = begin + requestIdBytes * 2
    return this.#digits.slice(begin, this.#used)
  }
}
