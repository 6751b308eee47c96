import {
  aggregatePaths, Aggregation, type AggregateQuery, ApiError, DocumentReader, parseAggregateQuery, parseJsonObject,
  ReplicaError, type StoredDocument,
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

  /** @param members of a document: at least those that are aggregated. @throws ReplicaError as `add` */
  addMembers(members: Readonly<Record<string, unknown>>): void {
    try {
      this.#aggregation ??= new Aggregation(this.#query)
      this.#aggregation.add(members)
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
