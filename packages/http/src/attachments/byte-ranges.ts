import { ApiError } from '@sectional/core'
import type { BlobSpan } from '@sectional/core'

/** A request with more ranges than this is answered with the whole content. */
const rangesMax = 9
/**
 * Parses the Range header of a request for `length` bytes (docs/reference/attachments.md#get-dbidattachment).
 * @returns null when the whole content must be sent: without a header, for a header that is not valid, for too many
 * ranges, and for a range that covers everything
 * @throws ApiError `range_not_satisfiable`
 */
export function byteRanges(header: string | undefined, length: number): readonly BlobSpan[] | null {
  if (header === undefined || !header.startsWith('bytes=')) return null
  const asked = header.slice('bytes='.length).split(',').map(text => text.trim()).filter(text => text !== '')
    .map(readRange)
  if (asked.length === 0 || asked.length > rangesMax || asked.includes(null)) return null
  const spans: BlobSpan[] = []
  for (const { first, last } of asked as Range[]) {
    if (first === 0 && last === null) return null
    const start = first === null ? Math.max(0, length - last!) : first
    const end = first === null || last === null ? length : Math.min(last + 1, length)
    if (start >= end) throw new ApiError('range_not_satisfiable')
    spans.push({ start, end })
  }
  return spans
}

/** Offsets of the first and last byte. When `first` is null, the range is the final `last` bytes. */
type Range = { readonly first: number; readonly last: number | null } | { readonly first: null; readonly last: number }

/** Parses one range as leniently as CouchDB's HTTP server: `5` means `5-`, and numbers may have a sign. */
function readRange(text: string): Range | null {
  if (text.startsWith('-')) {
    const last = readNumber(text.slice(1))
    return last === null ? null : { first: null, last }
  }
  const [first, last, ...more] = text.split('-').filter(part => part !== '').map(readNumber)
  if (first === undefined || first === null || last === null || more.length > 0) return null
  return { first, last: last ?? null }
}

function readNumber(text: string): number | null {
  return /^[+-]?\d+$/.test(text) ? Number(text) : null
}

/** Returns the value of a Content-Range header. */
export function contentRange({ start, end }: BlobSpan, length: number): string {
  return `bytes ${start}-${end - 1}/${length}`
}
