/**
 * How many replies a read waits for, without a network: replies go in, a verdict comes out. Answers need not
 * be equal: whoever asks merges them, and a merge of r answers holds every write that w = n - r + 1 replicas
 * confirmed.
 */
import { majority } from './majority.ts'

export interface ReadQuorum {
  /** r of this read. More than `replicas` can never be met. */
  readonly needed: number
  /** Replicas that may still be asked or were asked. */
  readonly replicas: number
  readonly answered: number
  readonly failed: number
}

/** `degraded`: every replica has replied, some answered, but fewer than r. */
export type ReadVerdict = 'waiting' | 'met' | 'degraded' | 'failed'

/**
 * @param active replicas that count (filling ones do not)
 * @param reachable those of them that can be asked at all
 * @param r as the client gave it: below 1 acts as 1, above `active` is never met; undefined: a majority
 */
export function readQuorum(active: number, reachable: number, r: number | undefined): ReadQuorum {
  return { needed: quorumSize(active, r), replicas: reachable, answered: 0, failed: 0 }
}

/** r or w as it acts. */
export function quorumSize(active: number, wanted: number | undefined): number {
  return wanted === undefined ? majority(active) : Math.max(1, wanted)
}

export function withAnswer(quorum: ReadQuorum): ReadQuorum {
  return { ...quorum, answered: quorum.answered + 1 }
}

export function withFailure(quorum: ReadQuorum): ReadQuorum {
  return { ...quorum, failed: quorum.failed + 1 }
}

export function readVerdict({ needed, replicas, answered, failed }: ReadQuorum): ReadVerdict {
  if (answered >= needed) return 'met'
  if (answered + failed < replicas) return 'waiting'
  return answered > 0 ? 'degraded' : 'failed'
}

/**
 * How many more replicas to ask now.
 *
 * @param asked replicas asked so far
 * @param hopeful those of them that may still answer in good time
 */
export function readersToAsk({ needed, replicas, answered }: ReadQuorum, asked: number, hopeful: number): number {
  return Math.max(0, Math.min(needed - answered - hopeful, replicas - asked))
}
