/**
 * A bounded map from times to sequences (docs/reference/purge-and-upkeep.md#get-db_time_seq). A new span begins every
 * three hours. Older spans are joined, so that a span is the longer the older it is.
 */
import type { TimeSpan } from '../contracts/shard-replica.ts'

export const timeSpansMax = 60
const hourMs = 3_600_000
const dayMs = 24 * hourMs
const yearMs = 365 * dayMs
export const timeSpanMs = 3 * hourMs
/** Earliest plausible time. A clock that shows an earlier one is wrong, and no span is recorded by it. */
export const timeSpanMin = 1_754_006_400_000

/** The lengths of joined spans, shortest first. */
const lengthsMs = [
  timeSpanMs, 6 * hourMs, 12 * hourMs, dayMs, 10 * dayMs, 30 * dayMs, 180 * dayMs, yearMs, 2 * yearMs, 4 * yearMs,
  8 * yearMs, 16 * yearMs,
]

/**
 * Returns the spans after a change.
 *
 * @param now time of the change in milliseconds since 1970
 * @returns the same array when the change belongs to the last span
 */
export function withChange(spans: readonly TimeSpan[], now: number, sequence: number): readonly TimeSpan[] {
  const begin = Math.floor(now / timeSpanMs) * timeSpanMs
  const last = spans.at(-1)
  if (now < timeSpanMin || (last !== undefined && begin <= last.begin)) return spans
  return joined([...spans, { begin, sequence }])
}

/** Joins neighbours, those of the shortest length first, until few enough are left. The newest span stays as it is. */
function joined(spans: readonly TimeSpan[]): readonly TimeSpan[] {
  let kept = spans
  for (const lengthMs of lengthsMs) {
    if (kept.length <= timeSpansMax) return kept
    const bin = (span: TimeSpan): number => Math.floor(span.begin / lengthMs)
    kept = kept.filter((span, index) => index === 0 || index === kept.length - 1 || bin(span) !== bin(kept[index - 1]!))
  }
  return kept.length <= timeSpansMax ? kept : [kept[0]!, ...kept.slice(kept.length - timeSpansMax + 1)]
}

/**
 * Returns a sequence such that every change up to it was recorded before `time`; 0: no such change is known.
 *
 * @param newest the replica's newest sequence, read before the spans
 */
export function sequenceBefore(spans: readonly TimeSpan[], time: number, newest: number): number {
  const last = spans.at(-1)
  // A change after the end of the last span would have begun another one.
  if (last !== undefined && last.begin + timeSpanMs <= time) return newest
  const index = spans.findLastIndex(({ begin }) => begin <= time)
  // The first span says nothing about earlier changes, because the spans may have been cleared.
  return index < 1 ? 0 : spans[index]!.sequence - 1
}
