/** About 10 MB of memory. */
const revisionsMax = 64 * 1024

/**
 * Remembers which attempt made the revisions that were replaced last on a node (`DocumentEdit.attempt`), because the
 * record of a document has the attempts of its leaves only. At least the last `revisionsMax / 2` are known, at most
 * `revisionsMax`, and none after a start.
 */
export class ReplacedAttempts {
  // Two generations: a single `Map` that loses its oldest entry with each new one skips thousands of deleted entries to
  // find it.
  #newer = new Map<string, number>()
  #older = new Map<string, number>()

  /**
   * @param prefix the prefix of the shard's keys, which belongs to one incarnation of the shard
   * @param attempt undefined: it is not known
   */
  note(prefix: number, id: string, revision: string, attempt: number | undefined): void {
    const key = `${prefix} ${revision} ${id}`
    if (attempt === undefined) {
      this.#newer.delete(key)
      this.#older.delete(key)
      return
    }
    if (this.#newer.size >= revisionsMax / 2) {
      this.#older = this.#newer
      this.#newer = new Map()
    }
    this.#newer.set(key, attempt)
  }

  of(prefix: number, id: string, revision: string): number | undefined {
    const key = `${prefix} ${revision} ${id}`
    return this.#newer.get(key) ?? this.#older.get(key)
  }
}
