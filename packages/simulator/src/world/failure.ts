/**
 * `crash`: an unexpected exception, or a node that ended itself. `safety`: a wrong result or state. `liveness`:
 * something did not happen in time.
 */
export type FailureKind = 'crash' | 'safety' | 'liveness'

export const exitCodes: Readonly<Record<FailureKind, number>> = { crash: 10, safety: 11, liveness: 12 }

export class Failure extends Error {
  override readonly name = 'Failure'
  readonly kind: FailureKind
  /** Name of the checker or phase that found the failure. */
  readonly finder: string

  constructor(kind: FailureKind, finder: string, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.kind = kind
    this.finder = finder
  }
}
