import { hash } from 'node:crypto'

/** About 10 MB of memory. */
const revisionsMax = 64 * 1024
/** Longer ids are replaced by their hashes, because an id can have 64 KiB. */
const idLengthMax = 100

/**
 * Remembers which attempts made revisions (`DocumentEdit.attempt`) where the record of the document does not tell: it
 * has the attempts of leaves only, and not that of a leaf which arrived without one. At least the last
 * `revisionsMax / 2` of these revisions of a node are known, at most `revisionsMax`, and none after a start.
 */
export class KnownAttempts {
  // Two generations: a single `Map` that loses its oldest entry with each new one skips thousands of deleted entries to
  // find it.
  #newer = new Map<string, number>()
  #older = new Map<string, number>()

  /** @param prefix the prefix of the shard's keys, which belongs to one incarnation of the shard */
  note(prefix: number, id: string, revision: string, attempt: number): void {
    if (this.#newer.size >= revisionsMax / 2) {
      this.#older = this.#newer
      this.#newer = new Map()
    }
    this.#newer.set(keyOf(prefix, id, revision), attempt)
  }

  /** Forgets a revision that was purged, so that clients can make it again. */
  forget(prefix: number, id: string, revision: string): void {
    const key = keyOf(prefix, id, revision)
    this.#newer.delete(key)
    this.#older.delete(key)
  }

  of(prefix: number, id: string, revision: string): number | undefined {
    const key = keyOf(prefix, id, revision)
    return this.#newer.get(key) ?? this.#older.get(key)
  }
}

function keyOf(prefix: number, id: string, revision: string): string {
  return id.length > idLengthMax ? `${prefix} ${revision}#${hash('sha256', id)}` : `${prefix} ${revision} ${id}`
}
