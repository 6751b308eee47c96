/** Functions that find positions in UTF-8 JSON. They require valid JSON, which JSON.parse or a check has accepted. */

import { asBuffer } from '../encoding/as-buffer.ts'

export const quoteByte = 0x22
export const backslashByte = 0x5c
export const openBracketByte = 0x5b
export const closeBracketByte = 0x5d
export const openBraceByte = 0x7b
export const closeBraceByte = 0x7d
export const commaByte = 0x2c
export const colonByte = 0x3a
export const minusByte = 0x2d
export const pointByte = 0x2e
export const zeroByte = 0x30
export const nineByte = 0x39
export const underscoreByte = 0x5f
export const spaceByte = 0x20

/** Returns true for white space: outside of strings, valid JSON has no other bytes up to the space (0x20). */
export function isSpace(code: number): boolean {
  return code <= spaceByte
}

export function skipSpace(bytes: Uint8Array, at: number): number {
  while (at < bytes.length && isSpace(bytes[at]!)) at++
  return at
}

/** Beyond this length, a native search for the end of a string is faster than a loop over its bytes. */
const longTextLength = 64

/**
 * Returns the position of the next quote or backslash of a string.
 *
 * @param start a position within the string
 * @returns the length of the input when there is neither
 */
export function plainTextEnd(bytes: Uint8Array, start: number): number {
  const longFrom = start + longTextLength
  for (let at = start; at < longFrom; at++) {
    const code = bytes[at]
    if (code === quoteByte || code === backslashByte) return at
    if (code === undefined) return bytes.length
  }
  const quote = bytes.indexOf(quoteByte, longFrom)
  const end = quote < 0 ? bytes.length : quote
  const escape = bytes.subarray(longFrom, end).indexOf(backslashByte)
  return escape < 0 ? end : longFrom + escape
}

/**
 * Returns the position after a string, given that of its opening quote. For a string without a closing quote, returns
 * the end of the input.
 */
export function skipString(bytes: Uint8Array, at: number): number {
  // After the first escape, go byte by byte: a new search for the end at each escape would take quadratic time.
  for (at = plainTextEnd(bytes, at + 1); ; at++) {
    const code = bytes[at]
    if (code === quoteByte) return at + 1
    if (code === backslashByte) at++
    else if (code === undefined) return bytes.length
  }
}

/** Returns the position after a literal or number, given that of its first byte. */
export function skipToken(bytes: Uint8Array, at: number): number {
  for (; at < bytes.length; at++) {
    const code = bytes[at]!
    if (code === commaByte || code === closeBracketByte || code === closeBraceByte || isSpace(code)) break
  }
  return at
}

/** Returns the position after a value of any kind, given that of its first byte. */
export function skipValue(bytes: Uint8Array, at: number): number {
  const first = bytes[at]
  if (first === quoteByte) return skipString(bytes, at)
  if (first !== openBraceByte && first !== openBracketByte) return skipToken(bytes, at)
  for (let depth = 0; at < bytes.length;) {
    const code = bytes[at]
    if (code === quoteByte) {
      at = skipString(bytes, at)
      continue
    }
    at++
    if (code === openBraceByte || code === openBracketByte) depth++
    else if ((code === closeBraceByte || code === closeBracketByte) && --depth === 0) break
  }
  return at
}

/**
 * Calls `visit` for each value of an object or array, with the position of its first byte and its name (empty in an
 * array). `visit` must return the position after the value.
 *
 * @returns the position after the object or array
 */
export function eachValue(bytes: Uint8Array, at: number, visit: (at: number, name: string) => number): number {
  const named = bytes[at] === openBraceByte
  at = skipSpace(bytes, at + 1)
  while (bytes[at] !== closeBraceByte && bytes[at] !== closeBracketByte) {
    let name = ''
    if (named) {
      const end = skipString(bytes, at)
      name = JSON.parse(textOf(bytes, at, end)) as string
      at = skipSpace(bytes, skipSpace(bytes, end) + 1)
    }
    at = skipSpace(bytes, visit(at, name))
    if (bytes[at] === commaByte) at = skipSpace(bytes, at + 1)
  }
  return at + 1
}

export function textOf(bytes: Uint8Array, start = 0, end = bytes.length): string {
  return asBuffer(bytes).toString('utf8', start, end)
}
