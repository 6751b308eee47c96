/** JSON text from the network: strict UTF-8, bounded depth, one error for all that is broken. */
import { isUtf8 } from 'node:buffer'
import { ApiError } from '../errors.ts'

/** Deepest nesting of arrays and objects that is accepted. */
export const JSON_DEPTH_MAX = 1000

/** A JSON text and its value. */
export interface JsonInput { readonly text: string; readonly value: unknown }

/**
 * Validates and parses.
 *
 * @throws ApiError `invalid_json`; `bad_request` when nested deeper than `JSON_DEPTH_MAX`
 */
export function readJson(input: Uint8Array | string): JsonInput {
  const text = typeof input === 'string' ? input : decodeUtf8(input)
  if (text.length > 2 * JSON_DEPTH_MAX && nestingDepth(text) > JSON_DEPTH_MAX) {
    throw new ApiError('bad_request', `JSON is nested deeper than ${JSON_DEPTH_MAX} levels`)
  }
  try {
    return { text, value: JSON.parse(text) }
  } catch (error) {
    throw new ApiError('invalid_json', undefined, { cause: error })
  }
}

/** @throws ApiError like `readJson` */
export function parseJson(input: Uint8Array | string): unknown {
  return readJson(input).value
}

export type JsonObject = { readonly [name: string]: unknown }

/** @throws ApiError like `readJson`, and `not_an_object` */
export function parseJsonObject(input: Uint8Array | string): JsonObject {
  const value = parseJson(input)
  if (!isJsonObject(value)) throw new ApiError('not_an_object')
  return value
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function decodeUtf8(bytes: Uint8Array): string {
  if (!isUtf8(bytes)) throw new ApiError('invalid_json')
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}

/** Deepest nesting of brackets outside strings; the text need not be valid. Stops counting above the limit. */
function nestingDepth(text: string): number {
  let depth = 0
  let deepest = 0
  for (let i = 0; i < text.length && deepest <= JSON_DEPTH_MAX; i++) {
    switch (text.charCodeAt(i)) {
      case 0x22:
        i = stringEnd(text, i)
        break
      case 0x5b:
      case 0x7b:
        if (++depth > deepest) deepest = depth
        break
      case 0x5d:
      case 0x7d:
        depth--
    }
  }
  return deepest
}

/** Index of the quote that closes the string opened at `start`; the text's length when none does. */
export function stringEnd(text: string, start: number): number {
  for (let from = start + 1; ;) {
    const quote = text.indexOf('"', from)
    if (quote === -1) return text.length
    let backslashes = 0
    while (text.charCodeAt(quote - 1 - backslashes) === 0x5c) backslashes++
    if (backslashes % 2 === 0) return quote
    from = quote + 1
  }
}
