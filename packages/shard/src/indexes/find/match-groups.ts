import {
  aggregatedColumns, aggregatePaths, Aggregation, type AggregateQuery, ApiError, DocumentReader, type FieldPath,
  parseAggregateQuery, parseJsonObject, ReplicaError, type StoredDocument,
} from '@sectional/core'

/** Aggregates the matches of one answer. */
export class MatchGroups {
  readonly #query: AggregateQuery
  readonly #reader: DocumentReader
  /** The matches since the last call of `take`. */
  #aggregation: Aggregation | undefined

  /** @param aggregate as in `FindRequest`. @throws ReplicaError `protocol` when it is not valid */
  constructor(aggregate: string) {
    try {
      this.#query = parseAggregateQuery(parseJsonObject(aggregate))
    } catch (error) {
      throw new ReplicaError('protocol', `the aggregation is not valid: ${(error as Error).message}`)
    }
    this.#reader = new DocumentReader(aggregatePaths(this.#query))
  }

  /** @throws ReplicaError `exhausted` when there are too many values */
  add(document: StoredDocument): void {
    this.addMembers(this.#reader.read(document))
  }

  /**
   * Returns the number of leading columns of an index in which rows must agree to be aggregated together; undefined
   * when the index lacks a field.
   */
  columnsIn(columns: readonly FieldPath[]): number | undefined {
    return aggregatedColumns(this.#query, columns)
  }

  /**
   * @param members of a document: at least those that are aggregated
   * @param count the number of documents that agree in these members
   * @throws ReplicaError as `add`
   */
  addMembers(members: Readonly<Record<string, unknown>>, count = 1): void {
    try {
      this.#aggregation ??= new Aggregation(this.#query)
      this.#aggregation.add(members, count)
    } catch (error) {
      throw error instanceof ApiError ? new ReplicaError('exhausted', error.message, { cause: error }) : error
    }
  }

  /** Returns the state of the matches since the last call; undefined when there were none. */
  take(): Uint8Array | undefined {
    const state = this.#aggregation?.encode()
    this.#aggregation = undefined
    return state
  }
}
