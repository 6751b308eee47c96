/**
 * Chooses the replica that decides an edit (docs/decisions/0003-one-decider.md), without using the network: the first
 * replica in order that answers. Only the first replica of the shard map decides with its own data alone. Another
 * replica, or one that declines because it is catching up, is first brought up to date for the documents in question
 * and then forced to decide. The decider thus does not change while a replica catches up, because two deciders at the
 * same time can hide conflicts.
 */

export interface Decision {
  /** Number of replicas, in the order in which they are asked. */
  readonly replicas: number
  /** Index of the replica that is asked now. */
  readonly current: number
  /** True when the replica must be brought up to date first. */
  readonly refresh: boolean
}

export type DecisionStep =
  /** With `refresh`, bring the replica up to date for these documents, then force it to decide. */
  | { readonly kind: 'ask'; readonly replica: number; readonly refresh: boolean }
  | { readonly kind: 'nobody' }

/** @param usual true when the first replica in order is also the first of the shard map */
export function decision(replicas: number, usual: boolean): Decision {
  return { replicas, current: 0, refresh: !usual }
}

/** Returns the replica to ask now. */
export function decisionStep({ replicas, current, refresh }: Decision): DecisionStep {
  return current < replicas ? { kind: 'ask', replica: current, refresh } : { kind: 'nobody' }
}

/**
 * Records that the replica of the current step did not decide. A replica that declines although it is forced has
 * failed.
 */
export function withRefusal({ replicas, current, refresh }: Decision, refusal: 'declined' | 'failed'): Decision {
  if (refusal === 'declined' && !refresh) return { replicas, current, refresh: true }
  return { replicas, current: current + 1, refresh: true }
}
