import { ApiError } from '@sectional/core'

/**
 * An error that a function of a design document caused. Its author, and not the operator of the node, must correct it,
 * so that it is not logged as a failure of the server.
 */
export class FunctionError extends ApiError {
  /**
   * @param error the member `error` of the response; the function may have chosen it
   * @param members as of `ApiError`
   */
  constructor(
    status: number, error: string, reason: string, cause?: unknown, members?: Readonly<Record<string, unknown>>,
  ) {
    super({ status, error }, reason, { cause, ...(members && { members }) })
  }
}
