import { SeededRandom } from '@sectional/runtime'

/** Draws random values from one stream of a seed. Streams with different names are independent of each other. */
export class Dice {
  readonly #random: SeededRandom
  readonly #seed: number

  constructor(seed: number) {
    this.#seed = seed
    this.#random = new SeededRandom(seed)
  }

  /** Returns another stream, so that the draws of one part do not change the draws of other parts. */
  fork(name: string): Dice {
    let hash = this.#seed ^ 0x9e3779b9
    for (let at = 0; at < name.length; at++) hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193)
    return new Dice((hash >>> 0) + (Math.floor(this.#seed / 0x1_0000_0000) * 0x1_0000_0000))
  }

  fraction(): number {
    return this.#random.fraction()
  }

  /** Returns an integer in [min, max]. */
  integer(min: number, max: number): number {
    return min + Math.floor(this.fraction() * (max - min + 1))
  }

  between(min: number, max: number): number {
    return min + this.fraction() * (max - min)
  }

  chance(probability: number): boolean {
    return this.fraction() < probability
  }

  pick<Item>(items: readonly Item[]): Item {
    if (items.length === 0) throw new RangeError('nothing to pick from')
    return items[this.integer(0, items.length - 1)] as Item
  }

  /** Returns one of the keys with a probability in proportion to its weight, or undefined when all weights are 0. */
  weighted<Key extends string>(weights: Readonly<Record<Key, number>>): Key | undefined {
    const entries = Object.entries<number>(weights) as [Key, number][]
    let left = this.fraction() * entries.reduce((sum, [, weight]) => sum + weight, 0)
    for (const [key, weight] of entries) {
      if (weight <= 0) continue
      left -= weight
      if (left < 0) return key
    }
    return undefined
  }

  /** Returns 32 hexadecimal digits, like the hash of a revision. */
  hash(): string {
    return Array.from({ length: 4 }, () => this.seed().toString(16).padStart(8, '0')).join('')
  }

  /** Returns `count` different items in random order. */
  sample<Item>(items: readonly Item[], count: number): Item[] {
    const left = [...items]
    return Array.from(
      { length: Math.min(count, left.length) }, () => left.splice(this.integer(0, left.length - 1), 1)[0] as Item,
    )
  }

  /** Returns an exponentially distributed value: the time between two events with a constant rate. */
  wait(meanMs: number): number {
    return -Math.log(1 - this.fraction()) * meanMs
  }

  seed(): number {
    return this.integer(0, 0xffff_ffff)
  }
}
