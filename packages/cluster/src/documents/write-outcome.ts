import type { ApiError } from '@sectional/core'
import type { WriteOutcome } from '../contracts/coordinator.ts'

/** The outcome of one write of several that failed: the others are answered all the same. */
export function errorOutcome({ error, reason, status }: ApiError): WriteOutcome {
  return { kind: 'error', error, reason, status }
}
