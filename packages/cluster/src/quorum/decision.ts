/**
 * Who decides an edit (design.md section 4), without a network: the first replica in order that can. Replicas
 * that are catching up decline; when nobody else is left, the first of those that declined is made to decide.
 */

export interface Decision {
  /** Replicas in the order in which they are asked. */
  readonly replicas: number
  /** How many were asked without force. */
  readonly asked: number
  /** Those that declined, in order; the ones that were then forced in vain are gone from it. */
  readonly declined: readonly number[]
}

export type DecisionStep =
  | { readonly kind: 'ask'; readonly replica: number; readonly force: boolean }
  | { readonly kind: 'nobody' }

export function decision(replicas: number): Decision {
  return { replicas, asked: 0, declined: [] }
}

/** The replica to ask now. */
export function decisionStep({ replicas, asked, declined }: Decision): DecisionStep {
  if (asked < replicas) return { kind: 'ask', replica: asked, force: false }
  const [first] = declined
  return first === undefined ? { kind: 'nobody' } : { kind: 'ask', replica: first, force: true }
}

/** The replica of the current step did not decide. */
export function withRefusal(state: Decision, refusal: 'declined' | 'failed'): Decision {
  const { replicas, asked, declined } = state
  if (asked < replicas) return { replicas, asked: asked + 1, declined: refusal === 'declined' ? [...declined, asked] : declined }
  return { replicas, asked, declined: declined.slice(1) }
}
