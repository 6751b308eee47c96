/**
 * The time for which deleted documents are kept: `deleted_document_ttl` of `_auto_purge`
 * (docs/reference/purge-and-upkeep.md#get-put-db_auto_purge).
 */

const form = /^(\d{1,9})_(sec|second|min|minute|hour|day|week|mon|month|year)s?$/
const secondMs = 1000
const dayMs = 86_400_000
const unitsMs: Readonly<Record<string, number>> = {
  sec: secondMs, second: secondMs, min: 60 * secondMs, minute: 60 * secondMs, hour: 3_600_000,
  day: dayMs, week: 7 * dayMs, mon: 30 * dayMs, month: 30 * dayMs, year: 365 * dayMs,
}

/** Returns milliseconds; Infinity for `infinity`; null when the text is not a valid time. */
export function parseTimeToLive(text: unknown): number | null {
  if (text === 'infinity') return Number.POSITIVE_INFINITY
  const match = typeof text === 'string' ? form.exec(text) : null
  return match === null ? null : Number(match[1]) * unitsMs[match[2]!]!
}
