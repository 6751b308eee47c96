/** Identifiers for documents and requests. */
import { asBuffer } from '@sectional/core'
import type { Clock, Random, Runtime } from '@sectional/runtime'
import type { HttpOptions } from '../settings/http-options.ts'

const incrementMax = 4093
/** The counter starts anew, with a new prefix, beyond this. */
const counterMax = 0xfff000

/**
 * Identifiers of 32 hex digits by the algorithms that `uuids/algorithm` names (docs/reference/server.md#get-_uuids).
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
   * 32 random hex digits, whatever the algorithm, for tags and boundaries: one that a client can foresee could be
   * written into what it separates.
   */
  random(): string {
    return this.#hex(16)
  }

  /**
   * A random prefix, then a counter that grows by random steps: ids of one node are nearly sorted, and hard to guess.
   */
  #sequential(): string {
    if (this.#counter > counterMax) {
      this.#prefix = this.#hex(13)
      this.#counter = 0
    }
    this.#counter += 1 + Math.floor(this.#random.fraction() * incrementMax)
    return this.#prefix + this.#counter.toString(16).padStart(6, '0')
  }

  /** Microseconds since 1970 as 14 digits, later ones for each call. */
  #time(): string {
    this.#lastMicroseconds = Math.max(this.#clock.now() * 1000, this.#lastMicroseconds + 1)
    return this.#lastMicroseconds.toString(16).padStart(14, '0')
  }

  /** Milliseconds, version, random bits, variant, random bits (RFC 9562 5.7). */
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
 * Request ids of 10 hex digits; randomness is drawn in batches because one draw costs as much as the rest of a route.
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
