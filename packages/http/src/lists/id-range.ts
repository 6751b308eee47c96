/** Ranges of document ids in byte order, which the keys of a list request select. */
import { compareUtf8, type IdBound } from '@sectional/core'
import type { ListParameters } from './list-parameters.ts'

/** `low` and `high` are in ascending order for both directions of a list; an absent bound means unbounded. */
export interface IdRange { readonly low?: IdBound; readonly high?: IdBound }

/** Returns the requested range, or null when no id can match. Keys that are not strings sort before every id. */
export function requestedRange({ start, end, descending, inclusiveEnd }: ListParameters): IdRange | null {
  const first = start === undefined ? undefined : bound(start.key, true)
  const last = end === undefined ? undefined : bound(end.key, inclusiveEnd)
  const [low, high] = descending ? [last, first] : [first, last]
  if (high === null) return null
  return { ...(low === null || low === undefined ? {} : { low }), ...(high === undefined ? {} : { high }) }
}

/** Returns the position of the first row of an empty list, from which its offset is computed. */
export function beginning({ start, descending }: ListParameters, scope: IdRange): IdBound | undefined {
  if (start === undefined) return descending ? scope.high : scope.low
  const asked = bound(start.key, true)
  if (asked !== null) return asked
  // The start key sorts before every id.
  return descending ? { id: scope.low?.id ?? '', inclusive: false } : scope.low
}

/** Converts a key into a bound. Returns null for a key that sorts before every id. */
function bound(key: unknown, inclusive: boolean): IdBound | null {
  return typeof key === 'string' ? { id: key, inclusive } : null
}

/** Returns the intersection of two ranges, or null when it is empty. */
export function intersect(one: IdRange, other: IdRange): IdRange | null {
  const low = tighter(one.low, other.low, 1)
  const high = tighter(one.high, other.high, -1)
  if (low !== undefined && high !== undefined) {
    const order = compareUtf8(low.id, high.id)
    if (order > 0 || (order === 0 && !(low.inclusive && high.inclusive))) return null
  }
  return { ...(low === undefined ? {} : { low }), ...(high === undefined ? {} : { high }) }
}

function tighter(one: IdBound | undefined, other: IdBound | undefined, sign: 1 | -1): IdBound | undefined {
  if (one === undefined || other === undefined) return one ?? other
  const order = compareUtf8(one.id, other.id) * sign
  if (order === 0) return one.inclusive ? other : one
  return order > 0 ? one : other
}

export function rangeHolds(range: IdRange, id: string): boolean {
  const { low, high } = range
  if (low !== undefined) {
    const order = compareUtf8(id, low.id)
    if (order < 0 || (order === 0 && !low.inclusive)) return false
  }
  if (high === undefined) return true
  const order = compareUtf8(id, high.id)
  return order < 0 || (order === 0 && high.inclusive)
}

/** Returns the first and last bound for the direction of a list. */
export function directed(range: IdRange, descending: boolean): { readonly start?: IdBound; readonly end?: IdBound } {
  const { low, high } = range
  const [start, end] = descending ? [high, low] : [low, high]
  return { ...(start === undefined ? {} : { start }), ...(end === undefined ? {} : { end }) }
}
