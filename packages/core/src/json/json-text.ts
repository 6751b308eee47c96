/** JSON from the network: strict UTF-8, bounded depth, one error for all that is broken. */
import { isUtf8 } from 'node:buffer'
import { ApiError } from '../errors.ts'
import {
  closeBraceByte, closeBracketByte, openBraceByte, openBracketByte, quoteByte, skipString, textOf,
} from './json-bytes.ts'
import { skipJsonSpace } from './json-grammar.ts'
import { jsonDepthMax, tooDeep } from './json-limits.ts'
import { rawNumber, readValue } from './json-values.ts'
import { hasEscapedName, mayBeMisread } from './misread-names.ts'

/** Valid JSON and its value. */
export interface JsonInput { readonly bytes: Uint8Array; readonly value: unknown }

/**
 * Validates and parses, however deep the nesting (JSON.parse needs no stack): whoever goes into the value must
 * bound it.
 *
 * @throws ApiError `invalid_json`
 */
export function readJson(input: Uint8Array | string): JsonInput {
  const bytes = jsonBytes(input)
  try {
    return { bytes, value: parseText(textOf(bytes)) }
  } catch (error) {
    throw error instanceof ApiError ? error : new ApiError('invalid_json', undefined, { cause: error })
  }
}

/** @throws SyntaxError; ApiError `invalid_json` for escapes that stand for no character */
export function parseText(text: string): unknown {
  const value: unknown = JSON.parse(text)
  if (!text.includes('\\')) return value
  if ((text.includes('\\ud') || text.includes('\\uD')) && hasLoneSurrogate(text)) throw new ApiError('invalid_json')
  return mayBeMisread(text, value) ? reread(text, false) : value
}

/** The object or array of a text of which JSON.parse may misread a name. */
function reread(text: string, exactly: boolean): unknown {
  const bytes = Buffer.from(text)
  const reading = readValue(bytes, skipJsonSpace(bytes, 0), exactly)
  for (let step = reading.next(); ; step = reading.next()) if (step.done === true) return step.value.value
}

/**
 * Whether one half of a surrogate pair is escaped without the other: no UTF-8 can hold it, and strict parsers refuse
 * it.
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

/** The value of valid JSON whose numbers JSON.stringify writes as they stand there, with all their digits. */
export function parseExactly(text: string): unknown {
  // Where JSON.parse misreads a name, it has no source of the values beside it either.
  if (text.includes('\\') && hasEscapedName(text)) return reread(text, true)
  return exactJson.parse(text, (_name, value, { source }) =>
    typeof value === 'number' && String(value) !== source ? rawNumber(source!) : value)
}

/** What TypeScript does not know yet (https://github.com/tc39/proposal-json-parse-with-source). */
const exactJson = JSON as unknown as {
  parse(
    text: string, reviver: (name: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown
}

/** @throws ApiError `invalid_json` for what is no UTF-8 */
export function jsonBytes(input: Uint8Array | string): Uint8Array {
  const bytes = typeof input === 'string' ? encodeUtf8(input) : input
  if (!isUtf8(bytes)) throw new ApiError('invalid_json')
  return bytes
}

/** @throws ApiError `invalid_json`; `bad_request` when nested deeper than `jsonDepthMax` */
export function parseJson(input: Uint8Array | string): unknown {
  const bytes = jsonBytes(input)
  // Before the parse: deep nesting costs it seconds.
  if (bytes.length > 2 * jsonDepthMax && nestingDepth(bytes) > jsonDepthMax) throw tooDeep()
  return readJson(bytes).value
}

/**
 * What `parseJson` gives, in slices.
 * @throws ApiError `invalid_json`; `bad_request` when nested deeper than `jsonDepthMax`
 */
export function* parseJsonInSlices(input: Uint8Array): Generator<void, unknown> {
  const bytes = jsonBytes(input)
  const start = skipJsonSpace(bytes, 0)
  if (bytes[start] !== openBraceByte && bytes[start] !== openBracketByte) return parseJson(bytes)
  const { value, end } = yield* readValue(bytes, start)
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

/** Deepest nesting of JSON; of other bytes it says anything. Stops counting above the limit. */
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
