import { ApiError } from '../errors.ts'
import { eachValue, openBraceByte, openBracketByte, skipValue } from './json-bytes.ts'
import { checkJson } from './json-check.ts'

/** A member of an object, or an element of an array. */
export interface JsonPart {
  /** Empty in an array. */
  readonly name: string
  /** The JSON of the value; a view of the input. */
  readonly text: Uint8Array
}

/**
 * Divides JSON that is an object or array into its members or elements. Their values are checked, and not built. The
 * check runs in slices.
 *
 * @param bytes UTF-8, without white space around the value
 * @param partsMax most members or elements
 * @returns null for JSON that is neither an object nor an array; such JSON is not checked
 * @throws ApiError `invalid_json`; `bad_request` when nested deeper than `jsonDepthMax`; `too_large` for more parts
 */
export function* jsonParts(bytes: Uint8Array, partsMax: number): Generator<void, readonly JsonPart[] | null> {
  if (bytes[0] !== openBraceByte && bytes[0] !== openBracketByte) return null
  const { end } = yield* checkJson(bytes, 0)
  if (end !== bytes.length) throw new ApiError('invalid_json')
  const parts: JsonPart[] = []
  eachValue(bytes, 0, (start, name) => {
    if (parts.length === partsMax) throw new ApiError('too_large', `JSON has more than ${partsMax} members or elements`)
    const next = skipValue(bytes, start)
    parts.push({ name, text: bytes.subarray(start, next) })
    return next
  })
  return parts
}
