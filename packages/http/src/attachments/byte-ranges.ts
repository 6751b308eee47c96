import { ApiError } from '@sectional/core'
import type { BlobSpan } from '@sectional/core'

/** More ranges than this in one request get the whole. */
const rangesMax = 9
/**
 * The Range header of a request for `length` bytes (docs/reference/attachments.md#get-dbidattachment).
 * @returns null where the whole is to be sent: no header, one that cannot be read, too many ranges, or everything
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

/** `first` null: the `last` bytes. */
type Range = { readonly first: number; readonly last: number | null } | { readonly first: null; readonly last: number }

/** Read as leniently as CouchDB's HTTP server does: `5` is `5-`, and signs may stand before numbers. */
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

/** As in `Content-Range`. */
export function contentRange({ start, end }: BlobSpan, length: number): string {
  return `bytes ${start}-${end - 1}/${length}`
}
