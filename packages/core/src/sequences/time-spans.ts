/**
 * A bounded map from times to sequences (docs/reference/purge-and-upkeep.md#get-db_time_seq): a new span every three
 * hours, and older ones joined so that they grow longer with age.
 */
import type { TimeSpan } from '../contracts/shard-replica.ts'

export const timeSpansMax = 60
const hourMs = 3_600_000
const dayMs = 24 * hourMs
const yearMs = 365 * dayMs
export const timeSpanMs = 3 * hourMs
/** Clocks that are this wrong say nothing. */
export const timeSpanMin = 1_754_006_400_000

/** Joined spans of these lengths, the shortest first. */
const lengthsMs = [
  timeSpanMs, 6 * hourMs, 12 * hourMs, dayMs, 10 * dayMs, 30 * dayMs, 180 * dayMs, yearMs, 2 * yearMs, 4 * yearMs,
  8 * yearMs, 16 * yearMs,
]

/** The spans after a change at `now` with that sequence; the same array when it belongs to the last span. */
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
 * Every change with a sequence up to this was recorded before `time`; 0: nobody knows of one.
 * @param newest sequence that the replica had reached before the spans were read
 */
export function sequenceBefore(spans: readonly TimeSpan[], time: number, newest: number): number {
  const last = spans.at(-1)
  // A change after the end of the last span would have begun another one.
  if (last !== undefined && last.begin + timeSpanMs <= time) return newest
  const index = spans.findLastIndex(({ begin }) => begin <= time)
  // When the spans were cleared, there were changes before the first one.
  return index < 1 ? 0 : spans[index]!.sequence - 1
}
