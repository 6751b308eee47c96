import type { Mapping } from './mapping.ts'

/** A node of a trie of contractions: sequences of characters that have elements of their own. */
export class ContractionNode {
  #mapping: Mapping = 0
  readonly #next = new Map<number, ContractionNode>()

  /** The mapping of the sequence that ends here; 0 if only longer ones do. */
  get mapping(): Mapping {
    return this.#mapping
  }

  /** Whether a longer sequence exists. */
  get hasNext(): boolean {
    return this.#next.size > 0
  }

  /** The code points with which a sequence can go on. */
  get continuations(): Iterable<number> {
    return this.#next.keys()
  }

  next(codePoint: number): ContractionNode | undefined {
    return this.#next.get(codePoint)
  }

  /** Adds the sequence of code points that are left on the way from this node. */
  add(codePoints: readonly number[], mapping: Mapping): void {
    const [first, ...rest] = codePoints
    if (first === undefined) {
      this.#mapping = mapping
      return
    }
    if (!this.#next.has(first)) this.#next.set(first, new ContractionNode())
    this.#next.get(first)!.add(rest, mapping)
  }
}
