/** About 10 MB of memory. */
const revisionsMax = 64 * 1024

/**
 * Remembers which attempt made the revisions that were replaced last on a node (`DocumentEdit.attempt`), because the
 * record of a document has the attempts of its leaves only. Nothing is known after a start.
 */
export class ReplacedAttempts {
  readonly #attempts = new Map<string, number>()

  /** @param attempt undefined: it is not known */
  note(shard: number, id: string, revision: string, attempt: number | undefined): void {
    const key = `${shard} ${revision} ${id}`
    this.#attempts.delete(key)
    if (attempt === undefined) return
    this.#attempts.set(key, attempt)
    if (this.#attempts.size > revisionsMax) this.#attempts.delete(this.#attempts.keys().next().value!)
  }

  of(shard: number, id: string, revision: string): number | undefined {
    return this.#attempts.get(`${shard} ${revision} ${id}`)
  }
}
