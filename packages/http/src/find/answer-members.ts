/** The members of an answer that describe how it was found. */
import type { FindStatistics } from '@sectional/cluster'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import { adviceOf, type Advice } from './advice.ts'
import { warnings, type FindPlan } from './find-plan.ts'
import type { FindRequest } from './find-request.ts'

export interface AnswerMembers {
  readonly execution_stats?: object
  readonly warning?: string
  readonly advice?: Advice
}

/** What is known when all matches were read. */
export interface FindOutcome {
  readonly statistics: FindStatistics
  /** Number of documents that were returned, or counted. */
  readonly results: number
  /** Milliseconds since the query began. */
  readonly timeMs: number
}

export function answerMembers(
  find: Pick<FindRequest, 'executionStats' | 'advice' | 'skip'>, plan: FindPlan, outcome: FindOutcome,
  { database }: RequestContext, { options }: Services,
): AnswerMembers {
  const examined = neededDocuments(outcome, find.skip)
  const warning = warnings(plan, examined, outcome.results, options.scanWarningRatio)
  return {
    ...(find.executionStats && { execution_stats: shownStatistics(outcome) }),
    ...(warning !== '' && { warning }),
    ...(find.advice && { advice: adviceOf(plan.suggestion, plan.rejected, database) }),
  }
}

/**
 * Estimates how many documents had to be read for the answer. Each shard may have found as many matches as the answer
 * needs, which says nothing about the index.
 */
function neededDocuments({ statistics, results }: FindOutcome, skip: number): number {
  const { documentsExamined, quorumDocumentsExamined, matchesFound } = statistics
  const share = matchesFound === 0 ? 1 : Math.min(1, (skip + results) / matchesFound)
  return share * (documentsExamined + quorumDocumentsExamined)
}

function shownStatistics({ statistics, results, timeMs }: FindOutcome): object {
  const { keysExamined, documentsExamined, quorumDocumentsExamined } = statistics
  return {
    total_keys_examined: keysExamined, total_docs_examined: documentsExamined,
    total_quorum_docs_examined: quorumDocumentsExamined, results_returned: results, execution_time_ms: timeMs,
  }
}
