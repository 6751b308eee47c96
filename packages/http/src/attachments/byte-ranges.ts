import { ApiError } from '@sectional/core'
import type { BlobSpan } from '@sectional/core'

/** More ranges than this in one request get the whole. */
const rangesMax = 9
const rangeForm = /^(\d*)-(\d*)$/

/**
 * The Range header of a request for `length` bytes (api.md A5.13).
 * @returns null where the whole is to be sent: no header, one that cannot be read, too many ranges, or everything
 * @throws ApiError `range_not_satisfiable`
 */
export function byteRanges(header: string | undefined, length: number): readonly BlobSpan[] | null {
  if (header === undefined || !header.startsWith('bytes=')) return null
  const texts = header.slice('bytes='.length).split(',').map(text => text.trim())
  if (texts.length > rangesMax || texts.some(text => text === '-' || !rangeForm.test(text))) return null
  if (texts.length === 1 && texts[0] === '0-') return null
  return texts.map(text => span(text, length))
}

function span(text: string, length: number): BlobSpan {
  const [, first, last] = rangeForm.exec(text) as unknown as [string, string, string]
  const start = first === '' ? Math.max(0, length - Number(last)) : Number(first)
  const end = first === '' || last === '' ? length : Math.min(Number(last) + 1, length)
  if (start >= end) throw new ApiError('range_not_satisfiable')
  return { start, end }
}

/** As in `Content-Range`. */
export function contentRange({ start, end }: BlobSpan, length: number): string {
  return `bytes ${start}-${end - 1}/${length}`
}
