/**
 * `crash`: an exception nobody expected, or a node that gave itself up; `safety`: something wrong was seen;
 * `liveness`: something did not come about in time.
 */
export type FailureKind = 'crash' | 'safety' | 'liveness'

export const exitCodes: Readonly<Record<FailureKind, number>> = { crash: 10, safety: 11, liveness: 12 }

export class Failure extends Error {
  override readonly name = 'Failure'
  readonly kind: FailureKind
  /** The checker or phase that found it. */
  readonly finder: string

  constructor(kind: FailureKind, finder: string, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.kind = kind
    this.finder = finder
  }
}
