import type { FindProgress } from '@sectional/core'
import type { FindStatistics } from '../contracts/find-query.ts'

/** Adds up what the replicas of all shards report while they answer a query. */
export class FindTally {
  #keysExamined = 0
  #documentsExamined = 0
  #quorumDocumentsExamined = 0
  #matches = 0

  add(
    { keysExamined, documentsExamined, matches }: Pick<FindProgress, 'keysExamined' | 'documentsExamined' | 'matches'>,
  ): void {
    this.#keysExamined += keysExamined
    this.#documentsExamined += documentsExamined
    this.#matches += matches
  }

  /** Counts keys only: for reports of candidates whose documents are read from several replicas. */
  addKeys({ keysExamined }: FindProgress): void {
    this.#keysExamined += keysExamined
  }

  /** Counts a document that was read from several replicas. */
  addQuorumDocument(): void {
    this.#quorumDocumentsExamined++
  }

  /** Counts documents that match, of those that were read from several replicas. */
  addQuorumMatches(count: number): void {
    this.#matches += count
  }

  /** Number of matches that replicas have reported. */
  get matches(): number {
    return this.#matches
  }

  statistics(): FindStatistics {
    return {
      keysExamined: this.#keysExamined, documentsExamined: this.#documentsExamined,
      quorumDocumentsExamined: this.#quorumDocumentsExamined, matchesFound: this.#matches,
    }
  }
}
