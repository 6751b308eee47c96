import { ApiError } from '../errors.ts'

/** Bounds of what an aggregation keeps. */
export interface AggregateLimits {
  readonly groupsMax: number
  /** Most values of one `$distinct` of one group. */
  readonly distinctMax: number
  /** Most characters of JSON of all groups and values. */
  readonly charactersMax: number
}

export const defaultAggregateLimits: AggregateLimits = Object.freeze({
  groupsMax: 10_000, distinctMax: 10_000, charactersMax: 16 << 20,
})

/** Counts what one aggregation keeps. */
export class AggregateBudget {
  readonly limits: AggregateLimits
  #characters = 0

  constructor(limits: AggregateLimits) {
    this.limits = limits
  }

  /** @param characters of JSON that are kept from now on; negative: that are no longer kept */
  keep(characters: number): void {
    this.#characters += characters
    if (this.#characters > this.limits.charactersMax) {
      throw tooMany(`values of more than ${this.limits.charactersMax} characters in all`)
    }
  }
}

/** Returns the error for an aggregation that exceeds a bound. */
export function tooMany(what: string): ApiError {
  return new ApiError(
    'bad_request', `The aggregation has ${what}; restrict the selector, or group by fields with fewer values`,
  )
}
