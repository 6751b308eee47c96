import type { RevisionPath } from '@sectional/core'
import type { Operation } from '../workload/history.ts'

/** The purges that may have been carried out, by document. */
export class PurgeRecords {
  readonly #byDocument: ReadonlyMap<string, readonly Operation[]>
  /** Deletions of documents that nodes may have purged because of the option `_auto_purge`. */
  readonly #autoPurged: ReadonlyMap<string, readonly Operation[]>

  constructor(operations: readonly Operation[]) {
    const effective = operations.filter(({ outcome }) => outcome !== 'failed')
    this.#byDocument = Map.groupBy(
      effective.filter(({ kind }) => kind === 'purge'), ({ database, id }) => `${database}/${id}`,
    )
    const purging = new Set(
      effective.filter(({ kind }) => kind === 'custom:auto-purge').map(({ database }) => database),
    )
    this.#autoPurged = Map.groupBy(
      effective.filter(({ database, kind, tombstone }) =>
        purging.has(database) && (kind === 'delete' || tombstone === true)),
      ({ database, id }) => `${database}/${id}`,
    )
  }

  /** Returns the purges of any revision of the document, and the deletions after which nodes may have purged it. */
  ofDocument(database: string, id: string): readonly Operation[] {
    const key = `${database}/${id}`
    return [...this.#byDocument.get(key) ?? [], ...this.#autoPurged.get(key) ?? []]
  }

  /** Returns when revisions of the document may have been purged first, in milliseconds; Infinity: never. */
  firstMs(database: string, id: string): number {
    return Math.min(...this.ofDocument(database, id).map(({ startMs }) => startMs))
  }

  /**
   * Returns whether a purge may have removed the revision: the purge named it or a descendant, or it named a path from
   * which a limit had removed ancestors of that generation.
   */
  mayHaveRemoved(database: string, id: string, revision: string): boolean {
    const key = `${database}/${id}`
    return this.#autoPurged.has(key) || (this.#byDocument.get(key) ?? [])
      .some(({ paths = [] }) => paths.some(path => pathHas(path, revision) || isCutOff(path, revision)))
  }
}

export function pathHas({ start, ids }: RevisionPath, revision: string): boolean {
  const [generation, hash] = revision.split('-') as [string, string]
  return ids[start - Number(generation)] === hash
}

function isCutOff({ start, ids }: RevisionPath, revision: string): boolean {
  return Number(revision.split('-')[0]) <= start - ids.length
}
