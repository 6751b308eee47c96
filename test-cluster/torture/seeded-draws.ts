/** Pseudo-random draws from a seed (mulberry32, public domain). */
export class SeededDraws {
  #state: number

  constructor(seed: number) {
    this.#state = seed | 0
  }

  /** Returns a number in [0, 1). */
  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000
  }

  /** Returns an integer from `from` to `to`, both included. */
  integer(from: number, to: number): number {
    return from + Math.floor(this.fraction() * (to - from + 1))
  }

  /** Returns whether an event of this probability happens. */
  happens(probability: number): boolean {
    return this.fraction() < probability
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.integer(0, items.length - 1)]!
  }

  /** Returns `count` different items in random order. */
  several<Item>(items: readonly Item[], count: number): Item[] {
    return items.map(item => ({ item, order: this.fraction() })).sort((a, b) => a.order - b.order)
      .slice(0, count).map(({ item }) => item)
  }

  /** Returns one of the names; each number is the weight of its name. */
  weighted<Name extends string>(weights: Readonly<Record<Name, number>>): Name {
    const entries = Object.entries(weights) as [Name, number][]
    let left = this.fraction() * entries.reduce((sum, [, weight]) => sum + weight, 0)
    for (const [name, weight] of entries) if ((left -= weight) < 0) return name
    return entries.at(-1)![0]
  }
}
