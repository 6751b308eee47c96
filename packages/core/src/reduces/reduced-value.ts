/** Reads the values of rows. */
import { ApiError } from '../errors.ts'
import { textOf } from '../json/json-bytes.ts'
import { parseJson } from '../json/json-text.ts'
import { reducedValueBytesMax } from './built-in-reduce.ts'
import { quoted, ReduceFailure } from './reduce-failure.ts'

const zero = 0x30
const nine = 0x39
const minus = 0x2d
/** Integers of at most this many digits are exact as doubles. */
const shortDigitsMax = 15
/** Bytes of invalid JSON that a failure contains. */
const quotedBytes = 256

/**
 * Parses the value of a row. Numbers become doubles, which they are in the map functions, too.
 *
 * @param name of the reduce function, for the failure
 * @throws ReduceFailure for a value of more than `reducedValueBytesMax` bytes, one that is nested deeper than
 * `jsonDepthMax`, and one that is not valid JSON
 */
export function parseValue(bytes: Uint8Array, name: string): unknown {
  const first = bytes[0]
  if (first !== undefined && first <= nine && (first >= zero || first === minus)) return parseNumber(bytes, name)
  if (bytes.length > reducedValueBytesMax) throw tooLong(bytes, name)
  try {
    return parseJson(bytes)
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    const text = textOf(bytes.subarray(0, quotedBytes))
    throw new ReduceFailure(`The ${name} function cannot read a value: ${error.reason}`, JSON.stringify(text))
  }
}

/** Most numbers are short integers, which a loop reads faster than a conversion to text. */
function parseNumber(bytes: Uint8Array, name: string): number {
  const { length } = bytes
  const start = bytes[0] === minus ? 1 : 0
  if (length - start <= shortDigitsMax) {
    let value = 0
    let at = start
    for (; at < length; at++) {
      const code = bytes[at]!
      if (code < zero || code > nine) break
      value = value * 10 + code - zero
    }
    if (at === length && at > start) return start === 0 ? value : -value
  }
  if (length > reducedValueBytesMax) throw tooLong(bytes, name)
  const text = textOf(bytes)
  const value = Number(text)
  if (Number.isFinite(value)) return value
  const reason = `The ${name} function requires numbers that a double can hold`
  throw new ReduceFailure(reason, JSON.stringify(text.slice(0, quotedBytes)))
}

function tooLong(bytes: Uint8Array, name: string): ReduceFailure {
  const reason = `The ${name} function accepts values of at most ${reducedValueBytesMax} bytes`
  return new ReduceFailure(reason, quoted(bytes))
}
