/** The bound of a scan by document id, in the byte order of UTF-8. */
export interface IdBound { readonly id: string; readonly inclusive: boolean }

/** A scan by document id. */
export interface IdScan {
  /** `start` and `end` are in the direction of the scan: a descending scan starts at the greater id. */
  readonly start?: IdBound
  readonly end?: IdBound
  readonly descending: boolean
  readonly limit?: number
}
