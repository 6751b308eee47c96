/** Parses JSON from the network: strict UTF-8, bounded depth, and one error, `invalid_json`, for all invalid input. */
import { isUtf8 } from 'node:buffer'
import { ApiError } from '../errors.ts'
import {
  closeBraceByte, closeBracketByte, openBraceByte, openBracketByte, quoteByte, skipString, textOf,
} from './json-bytes.ts'
import { skipJsonSpace } from './json-grammar.ts'
import { jsonDepthMax, tooDeep } from './json-limits.ts'
import { rawNumber, readValue, type NumberReading } from './json-values.ts'
import { hasEscapedName, mayBeMisread } from './misread-names.ts'

/** The bytes of valid JSON and the value that they denote. */
export interface JsonInput { readonly bytes: Uint8Array; readonly value: unknown }

/**
 * Validates and parses JSON of any depth, since JSON.parse does not recurse on the stack. A caller that recurses into
 * the value must limit its depth.
 *
 * @throws ApiError `invalid_json`
 */
export function readJson(input: Uint8Array | string): JsonInput {
  const bytes = jsonBytes(input)
  return { bytes, value: readText(textOf(bytes)) }
}

/** @throws ApiError `invalid_json` */
function readText(text: string): unknown {
  try {
    return parseText(text)
  } catch (error) {
    throw error instanceof ApiError ? error : new ApiError('invalid_json', undefined, { cause: error })
  }
}

/** @throws SyntaxError for invalid JSON; ApiError `invalid_json` for escapes that denote a lone surrogate */
export function parseText(text: string): unknown {
  const value: unknown = JSON.parse(text)
  if (!text.includes('\\')) return value
  if ((text.includes('\\ud') || text.includes('\\uD')) && hasLoneSurrogate(text)) throw new ApiError('invalid_json')
  return withItsNames(text, value)
}

/**
 * Like `parseText`, for JSON that a function of a design document has made: its texts may contain lone surrogates.
 *
 * @throws SyntaxError for invalid JSON
 */
export function parseEmitted(text: string): unknown {
  const value: unknown = JSON.parse(text)
  return text.includes('\\') ? withItsNames(text, value) : value
}

/** Returns the value of a text, which JSON.parse may have misread. */
function withItsNames(text: string, value: unknown): unknown {
  return mayBeMisread(text, value) ? reread(text, 'rounded') : value
}

/** Parses an object or array again, without JSON.parse, which may have misread a name in it. */
function reread(text: string, numbers: NumberReading): unknown {
  const bytes = Buffer.from(text)
  const reading = readValue(bytes, skipJsonSpace(bytes, 0), numbers)
  for (let step = reading.next(); ; step = reading.next()) if (step.done === true) return step.value.value
}

/**
 * Whether an escape denotes one half of a surrogate pair without the other. UTF-8 cannot encode it, and strict parsers
 * refuse it.
 */
function hasLoneSurrogate(text: string): boolean {
  let lowAt = -1
  for (let at = text.indexOf('\\'); at >= 0; at = text.indexOf('\\', at + 2)) {
    const code = text[at + 1] === 'u' ? parseInt(text.slice(at + 2, at + 6), 16) : 0
    const isLow = (code & 0xfc00) === 0xdc00
    if (lowAt >= 0 ? !isLow || at !== lowAt : isLow) return true
    lowAt = (code & 0xfc00) === 0xd800 ? at + '\\ud800'.length : -1
  }
  return lowAt >= 0
}

/** Parses valid JSON into a value whose numbers JSON.stringify writes exactly as in the text, with all their digits. */
export function parseExactly(text: string): unknown {
  // When JSON.parse misreads a name, it does not pass the source of the neighbouring values either.
  if (text.includes('\\') && hasEscapedName(text)) return reread(text, 'exact')
  return exactJson.parse(text, (_name, value, { source }) =>
    typeof value === 'number' && String(value) !== source ? rawNumber(source!) : value)
}

/** TypeScript does not declare these functions yet (https://github.com/tc39/proposal-json-parse-with-source). */
const exactJson = JSON as unknown as {
  parse(
    text: string, reviver: (name: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown
}

/** Returns the bytes of JSON text. @throws ApiError `invalid_json` when they are not valid UTF-8 */
export function jsonBytes(input: Uint8Array | string): Uint8Array {
  const bytes = typeof input === 'string' ? encodeUtf8(input) : input
  if (!isUtf8(bytes)) throw new ApiError('invalid_json')
  return bytes
}

/** @throws ApiError `invalid_json`; `bad_request` when nested deeper than `jsonDepthMax` */
export function parseJson(input: Uint8Array | string): unknown {
  // A short text cannot be too deep. Most keys of views are one, and to encode it would take longer than to parse it.
  if (typeof input === 'string' && input.length <= 2 * jsonDepthMax && input.isWellFormed()) return readText(input)
  const bytes = jsonBytes(input)
  // Check the depth before parsing, because JSON.parse takes seconds for deep nesting.
  if (bytes.length > 2 * jsonDepthMax && nestingDepth(bytes) > jsonDepthMax) throw tooDeep()
  return readJson(bytes).value
}

/**
 * Parses a value that a client sends to be compared with others, or to be stored as it was parsed. Documents are parsed
 * otherwise (`parseDocument`): they keep integers of any length.
 *
 * @throws ApiError like `parseJson`, and `invalid_json` for numbers beyond the range of doubles, which have no place in
 * the order of values
 */
export function parseFiniteJson(input: Uint8Array | string): unknown {
  const value = parseJson(input)
  if (!hasFiniteNumbers(value)) throw new ApiError('invalid_json')
  return value
}

/** Whether all numbers in a value are finite. */
function hasFiniteNumbers(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value !== 'object' || value === null) return true
  return Array.isArray(value) ? value.every(hasFiniteNumbers) : Object.values(value).every(hasFiniteNumbers)
}

/**
 * Like `parseFiniteJson`, in slices.
 *
 * @throws ApiError `invalid_json`; `bad_request` when nested deeper than `jsonDepthMax`
 */
export function* parseFiniteJsonInSlices(input: Uint8Array): Generator<void, unknown> {
  const bytes = jsonBytes(input)
  const start = skipJsonSpace(bytes, 0)
  if (bytes[start] !== openBraceByte && bytes[start] !== openBracketByte) return parseFiniteJson(bytes)
  const { value, end } = yield* readValue(bytes, start, 'finite')
  if (skipJsonSpace(bytes, end) < bytes.length) throw new ApiError('invalid_json')
  return value
}

export type JsonObject = { readonly [name: string]: unknown }

/** @throws ApiError like `parseJson`, and `not_an_object` */
export function parseJsonObject(input: Uint8Array | string): JsonObject {
  const value = parseJson(input)
  if (!isJsonObject(value)) throw new ApiError('not_an_object')
  return value
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function encodeUtf8(text: string): Buffer {
  if (!text.isWellFormed()) throw new ApiError('invalid_json')
  return Buffer.from(text, 'utf8')
}

/** Returns the depth of JSON, counted no further than just above the limit; meaningless for bytes that are not JSON. */
function nestingDepth(bytes: Uint8Array): number {
  let depth = 0
  let deepest = 0
  for (let at = 0; at < bytes.length && deepest <= jsonDepthMax;) {
    const code = bytes[at]
    if (code === quoteByte) {
      at = skipString(bytes, at)
      continue
    }
    at++
    if (code === openBracketByte || code === openBraceByte) deepest = Math.max(deepest, ++depth)
    else if (code === closeBracketByte || code === closeBraceByte) depth--
  }
  return deepest
}
