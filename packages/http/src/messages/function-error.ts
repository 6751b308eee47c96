import { ApiError } from '@sectional/core'

/**
 * An error that a function of a design document caused. Its author, and not the operator of the node, must correct it,
 * so that it is not logged as a failure of the server.
 */
export class FunctionError extends ApiError {
  /** @param error the member `error` of the response; the function may have chosen it */
  constructor(status: number, error: string, reason: string, cause?: unknown) {
    super({ status, error }, reason, { cause })
  }
}
