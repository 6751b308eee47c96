/** Remembers on which node each replica history was last found. Only a hint for since-tokens. */
export class ReplicaHistories {
  readonly #nodes = new Map<string, string>()

  learn(history: string, node: string): void {
    this.#nodes.delete(history)
    this.#nodes.set(history, node)
    if (this.#nodes.size > historiesMax) this.#nodes.delete(this.#nodes.keys().next().value!)
  }

  node(history: string): string | undefined {
    return this.#nodes.get(history)
  }
}

const historiesMax = 20_000
