/** Generates identifiers for documents and requests. */
import { asBuffer } from '@sectional/core'
import type { Clock, Random, Runtime } from '@sectional/runtime'
import type { HttpOptions } from '../settings/http-options.ts'

const incrementMax = 4093
/** Above this value the counter restarts with a new prefix. */
const counterMax = 0xfff000

/**
 * Generates identifiers of 32 hex digits with the algorithm of `uuids/algorithm` (docs/reference/server.md#get-_uuids).
 */
export class UuidGenerator {
  readonly #random: Random
  readonly #clock: Clock
  readonly #options: HttpOptions
  #prefix = ''
  #counter = counterMax + 1
  #lastMicroseconds = 0

  constructor({ random, clock }: Pick<Runtime, 'random' | 'clock'>, options: HttpOptions) {
    this.#random = random
    this.#clock = clock
    this.#options = options
  }

  next(): string {
    switch (this.#options.uuidAlgorithm) {
      case 'random': return this.random()
      case 'utc_random': return this.#time() + this.#hex(9)
      case 'utc_id': return this.#time() + this.#options.uuidSuffix
      case 'uuid_v7': return this.#version7()
      default: return this.#sequential()
    }
  }

  /**
   * Returns 32 random hex digits for any configured algorithm. Tags and boundaries need them, because a client could
   * put a predictable boundary into the content that it separates.
   */
  random(): string {
    return this.#hex(16)
  }

  /**
   * Returns a random prefix followed by a counter that grows by random steps. Ids of one node are nearly sorted, and
   * hard to guess.
   */
  #sequential(): string {
    if (this.#counter > counterMax) {
      this.#prefix = this.#hex(13)
      this.#counter = 0
    }
    this.#counter += 1 + Math.floor(this.#random.fraction() * incrementMax)
    return this.#prefix + this.#counter.toString(16).padStart(6, '0')
  }

  /** Returns microseconds since 1970 as 14 hex digits. Each call returns a higher value than the one before. */
  #time(): string {
    this.#lastMicroseconds = Math.max(this.#clock.now() * 1000, this.#lastMicroseconds + 1)
    return this.#lastMicroseconds.toString(16).padStart(14, '0')
  }

  /** Returns a UUID of version 7: milliseconds, version, random bits, variant, random bits (RFC 9562 5.7). */
  #version7(): string {
    const random = this.#hex(10)
    const variant = (0x8 | parseInt(random[3]!, 16) & 0x3).toString(16)
    return `${this.#clock.now().toString(16).padStart(12, '0')}7${random.slice(0, 3)}${variant}${random.slice(4, 19)}`
  }

  #hex(bytes: number): string {
    return asBuffer(this.#random.bytes(bytes)).toString('hex')
  }
}

const requestIdBytes = 5
const requestIdBatch = 256

/**
 * Generates request ids of 10 hex digits. Random bytes are drawn in batches, because one draw costs as much as the rest
 * of a cheap route.
 */
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
