/** Moving over UTF-8 JSON that JSON.parse has accepted. */

import { asBuffer } from '../encoding/as-buffer.ts'

export const QUOTE = 0x22
export const BACKSLASH = 0x5c
export const OPEN_BRACKET = 0x5b
export const CLOSE_BRACKET = 0x5d
export const OPEN_BRACE = 0x7b
export const CLOSE_BRACE = 0x7d
export const COMMA = 0x2c
export const COLON = 0x3a
export const MINUS = 0x2d
export const POINT = 0x2e
export const ZERO = 0x30
export const NINE = 0x39
export const UNDERSCORE = 0x5f
export const SPACE = 0x20

/** Space, tab, line feed, carriage return: outside strings nothing else of valid JSON is as low. */
export function isSpace(code: number): boolean {
  return code <= SPACE
}

export function skipSpace(bytes: Uint8Array, at: number): number {
  while (at < bytes.length && isSpace(bytes[at]!)) at++
  return at
}

/** From here on a native search for the end of a string is faster than a look at each byte. */
const LONG_TEXT_LENGTH = 64

/** From within a string to its closing quote or first backslash; the end of the input when there is neither. */
export function plainTextEnd(bytes: Uint8Array, start: number): number {
  const longFrom = start + LONG_TEXT_LENGTH
  for (let at = start; at < longFrom; at++) {
    const code = bytes[at]
    if (code === QUOTE || code === BACKSLASH) return at
    if (code === undefined) return bytes.length
  }
  const quote = bytes.indexOf(QUOTE, longFrom)
  const end = quote < 0 ? bytes.length : quote
  const escape = bytes.subarray(longFrom, end).indexOf(BACKSLASH)
  return escape < 0 ? end : longFrom + escape
}

/** From an opening quote to behind the closing one; the end of the input when there is none. */
export function skipString(bytes: Uint8Array, at: number): number {
  // Byte by byte behind the first escape: another search for the end would make the time quadratic.
  for (at = plainTextEnd(bytes, at + 1); ; at++) {
    const code = bytes[at]
    if (code === QUOTE) return at + 1
    if (code === BACKSLASH) at++
    else if (code === undefined) return bytes.length
  }
}

/** From the first byte of a literal or number to behind its last one. */
export function skipToken(bytes: Uint8Array, at: number): number {
  for (; at < bytes.length; at++) {
    const code = bytes[at]!
    if (code === COMMA || code === CLOSE_BRACKET || code === CLOSE_BRACE || isSpace(code)) break
  }
  return at
}

/** From the first byte of any value to behind its last one. */
export function skipValue(bytes: Uint8Array, at: number): number {
  const first = bytes[at]
  if (first === QUOTE) return skipString(bytes, at)
  if (first !== OPEN_BRACE && first !== OPEN_BRACKET) return skipToken(bytes, at)
  for (let depth = 0; at < bytes.length;) {
    const code = bytes[at]
    if (code === QUOTE) {
      at = skipString(bytes, at)
      continue
    }
    at++
    if (code === OPEN_BRACE || code === OPEN_BRACKET) depth++
    else if ((code === CLOSE_BRACE || code === CLOSE_BRACKET) && --depth === 0) break
  }
  return at
}

/**
 * Calls `visit` with the first byte of each value of an object or array, and its name; `visit` returns the byte
 * behind the value. Returns the byte behind the object or array.
 */
export function eachValue(bytes: Uint8Array, at: number, visit: (at: number, name: string) => number): number {
  const named = bytes[at] === OPEN_BRACE
  at = skipSpace(bytes, at + 1)
  while (bytes[at] !== CLOSE_BRACE && bytes[at] !== CLOSE_BRACKET) {
    let name = ''
    if (named) {
      const end = skipString(bytes, at)
      name = JSON.parse(textOf(bytes, at, end)) as string
      at = skipSpace(bytes, skipSpace(bytes, end) + 1)
    }
    at = skipSpace(bytes, visit(at, name))
    if (bytes[at] === COMMA) at = skipSpace(bytes, at + 1)
  }
  return at + 1
}

export function textOf(bytes: Uint8Array, start = 0, end = bytes.length): string {
  return asBuffer(bytes).toString('utf8', start, end)
}
