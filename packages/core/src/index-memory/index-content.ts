import { hash } from 'node:crypto'
import type { IndexFailure, IndexRow, IndexState, RowPlace } from '../contracts/index-replica.ts'
import { compareRows } from '../contracts/index-replica.ts'
import type { ChangeRow } from '../contracts/shard-replica.ts'
import type { MappedRow } from './indexer.ts'

export type StoredRow = RowPlace & Pick<IndexRow, 'value'>

/** The rows of one index under one history of the replica. An index that begins anew gets a new object. */
export class IndexContent {
  readonly history: string
  /** The sequence up to which the changes were read to their end (`IndexState.position`). */
  sequence = 0
  /** The sequence of the last change that was applied, or `sequence` if that is greater. */
  readSequence = 0
  /** The digest of the rows; undefined when they have changed since it was computed. */
  #version: string | undefined
  readonly #rows = new Map<string, readonly MappedRow[]>()
  readonly #failures = new Map<string, string>()

  constructor(history: string) {
    this.history = history
  }

  /** Replaces the rows of a changed document; a deleted or purged document has none. */
  apply({ id, sequence, leaves, purged }: ChangeRow, map: () => readonly MappedRow[]): void {
    this.#failures.delete(id)
    const before = this.#rows.get(id) ?? []
    const after = purged || leaves[0]!.deleted ? [] : this.#mapped(id, map)
    if (after.length > 0) this.#rows.set(id, after)
    else this.#rows.delete(id)
    if (!areEqual(before, after)) this.#version = undefined
    this.readSequence = sequence
  }

  /** Records that the changes up to `sequence` at least were read to their end. */
  complete(sequence: number): void {
    this.readSequence = Math.max(this.readSequence, sequence)
    this.sequence = this.readSequence
  }

  /** Returns all rows in the order of the index. */
  sorted(): readonly StoredRow[] {
    return [...this.#rows].flatMap(([id, rows]) => rows.map((row, number) => ({ ...row, id, number })))
      .sort(compareRows)
  }

  state(): IndexState {
    const rowCount = [...this.#rows.values()].reduce((sum, rows) => sum + rows.length, 0)
    return {
      position: { history: this.history, sequence: this.sequence }, readSequence: this.readSequence,
      version: this.#version ??= this.#digest(), rowCount,
    }
  }

  #digest(): string {
    return hash('md5', JSON.stringify(this.sorted().map(({ key, id, number, value }) =>
      [key, id, number, Buffer.from(value).toString('latin1')])))
  }

  failures(): readonly IndexFailure[] {
    return [...this.#failures].map(([id, error]) => ({ id, error }))
  }

  #mapped(id: string, map: () => readonly MappedRow[]): readonly MappedRow[] {
    try {
      return map()
    } catch (error) {
      this.#failures.set(id, String(error))
      return []
    }
  }
}

function areEqual(a: readonly MappedRow[], b: readonly MappedRow[]): boolean {
  return a.length === b.length
    && a.every(({ key, value }, at) => key === b[at]!.key && Buffer.compare(value, b[at]!.value) === 0)
}
