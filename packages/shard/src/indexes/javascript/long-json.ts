/** Reads what functions made as JSON, long texts in slices: `JSON.parse` takes a second for 15 MB of small objects. */
import { checkJson, parseEmitted, readValue } from '@sectional/core'

/** Longer JSON, in UTF-16 units, is read in slices. */
const shortLength = 64 * 1024

/** @throws SyntaxError or ApiError for what is not JSON, or long and nested deeper than documents may be */
export function* checkEmitted(json: string): Generator<void, void> {
  if (isShort(json)) return void JSON.parse(json)
  const bytes = Buffer.from(json)
  expectEnd((yield* checkJson(bytes, 0)).end, bytes)
}

/** @throws SyntaxError or ApiError as `checkEmitted` */
export function* readEmitted(json: string): Generator<void, unknown> {
  if (isShort(json)) return parseEmitted(json)
  const bytes = Buffer.from(json)
  const { value, end } = yield* readValue(bytes, 0)
  expectEnd(end, bytes)
  return value
}

/** Strings are short enough for `JSON.parse`, whatever their length. */
function isShort(json: string): boolean {
  return json.length <= shortLength || (!json.startsWith('{') && !json.startsWith('['))
}

function expectEnd(end: number, bytes: Uint8Array): void {
  if (end !== bytes.length) throw new SyntaxError('text follows the JSON')
}
