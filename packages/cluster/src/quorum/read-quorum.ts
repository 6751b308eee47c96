/**
 * Counts the replies of a read, without using the network, and returns a verdict. Answers need not be equal: the caller
 * merges them, and a merge of r answers includes every write that w = n - r + 1 replicas confirmed.
 */
import { majority } from './majority.ts'

export interface ReadQuorum {
  /** The r of this read. A value greater than `replicas` can never be met. */
  readonly needed: number
  /** Number of replicas that were asked or may still be asked. */
  readonly replicas: number
  readonly answered: number
  readonly failed: number
}

/** `degraded`: every replica has replied, and at least one but fewer than r have answered. */
export type ReadVerdict = 'waiting' | 'met' | 'degraded' | 'failed'

/**
 * @param active number of replicas that count (filling ones do not)
 * @param reachable number of those that can be asked
 * @param r the client's r: values below 1 act as 1, values above `active` are never met; undefined: a majority
 */
export function readQuorum(active: number, reachable: number, r: number | undefined): ReadQuorum {
  return { needed: quorumSize(active, r), replicas: reachable, answered: 0, failed: 0 }
}

/** Returns the effective r or w. */
export function quorumSize(active: number, wanted: number | undefined): number {
  return wanted === undefined ? majority(active) : Math.max(1, wanted)
}

export function withAnswer(quorum: ReadQuorum): ReadQuorum {
  return { ...quorum, answered: quorum.answered + 1 }
}

export function withFailure(quorum: ReadQuorum): ReadQuorum {
  return { ...quorum, failed: quorum.failed + 1 }
}

/**
 * Returns the verdict on a read by the replies so far. `degraded` and `failed` are only possible when every replica
 * that can be asked has answered or has failed.
 */
export function readVerdict({ needed, replicas, answered, failed }: ReadQuorum): ReadVerdict {
  if (answered >= needed) return 'met'
  if (answered + failed < replicas) return 'waiting'
  return answered > 0 ? 'degraded' : 'failed'
}

/**
 * Returns how many more replicas to ask now.
 *
 * @param asked number of replicas asked so far
 * @param hopeful number of those that may still answer in time
 */
export function readersToAsk({ needed, replicas, answered }: ReadQuorum, asked: number, hopeful: number): number {
  return Math.max(0, Math.min(needed - answered - hopeful, replicas - asked))
}
