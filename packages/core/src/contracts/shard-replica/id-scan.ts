/** Bound of a scan by document id (byte order of UTF-8). */
export interface IdBound { readonly id: string; readonly inclusive: boolean }

/** A scan by document id. */
export interface IdScan {
  /** First and last in the direction of the scan. */
  readonly start?: IdBound
  readonly end?: IdBound
  readonly descending: boolean
  readonly limit?: number
}
