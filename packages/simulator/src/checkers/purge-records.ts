import type { RevisionPath } from '@sectional/core'
import type { Operation } from '../workload/history.ts'

/** The purges that may have been carried out, by document. */
export class PurgeRecords {
  readonly #byDocument: ReadonlyMap<string, readonly Operation[]>

  constructor(operations: readonly Operation[]) {
    this.#byDocument = Map.groupBy(
      operations.filter(({ kind, outcome }) => kind === 'purge' && outcome !== 'failed'),
      ({ database, id }) => `${database}/${id}`,
    )
  }

  /** Returns the purges of any revision of the document. */
  ofDocument(database: string, id: string): readonly Operation[] {
    return this.#byDocument.get(`${database}/${id}`) ?? []
  }

  /**
   * Returns whether a purge may have removed the revision: the purge named it or a descendant, or it named a path from
   * which a limit had removed ancestors of that generation.
   */
  mayHaveRemoved(database: string, id: string, revision: string): boolean {
    return this.ofDocument(database, id)
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
