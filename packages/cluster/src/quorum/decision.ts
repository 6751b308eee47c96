/**
 * Who decides an edit (docs/decisions/0003-one-decider.md), without a network: the first replica in order that
 * answers. Only the first of the shard's map decides on what it has by itself. Another one, and one that declines
 * because it is catching up, is brought up to date for the documents at hand and then made to decide. So the decider
 * does not change while a replica catches up: two deciders at a time is what hides conflicts.
 */

export interface Decision {
  /** Replicas in the order in which they are asked. */
  readonly replicas: number
  /** The one that is asked now. */
  readonly current: number
  /** It must be brought up to date first. */
  readonly refresh: boolean
}

export type DecisionStep =
  /** `refresh`: bring it up to date for these documents, then ask it with force. */
  | { readonly kind: 'ask'; readonly replica: number; readonly refresh: boolean }
  | { readonly kind: 'nobody' }

/** @param usual whether the first in order is the first of the shard's map */
export function decision(replicas: number, usual: boolean): Decision {
  return { replicas, current: 0, refresh: !usual }
}

/** The replica to ask now. */
export function decisionStep({ replicas, current, refresh }: Decision): DecisionStep {
  return current < replicas ? { kind: 'ask', replica: current, refresh } : { kind: 'nobody' }
}

/** The replica of the current step did not decide. One that declines even with force has failed. */
export function withRefusal({ replicas, current, refresh }: Decision, refusal: 'declined' | 'failed'): Decision {
  if (refusal === 'declined' && !refresh) return { replicas, current, refresh: true }
  return { replicas, current: current + 1, refresh: true }
}
