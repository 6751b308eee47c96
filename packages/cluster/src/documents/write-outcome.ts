import type { ApiError } from '@sectional/core'
import type { WriteOutcome } from '../contracts/coordinator.ts'

/** The outcome of one failed write of several. The other writes still receive their own outcomes. */
export function errorOutcome({ error, reason, status }: ApiError): WriteOutcome {
  return { kind: 'error', error, reason, status }
}
