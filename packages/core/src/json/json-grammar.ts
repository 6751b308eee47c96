/** The tokens of JSON (RFC 8259), in bytes that need not be valid. Each function returns the end of a token, or -1. */
import { backslashByte, minusByte, nineByte, pointByte, quoteByte, zeroByte } from './json-bytes.ts'

/** Returns the position after any spaces, tabs, line feeds and carriage returns. */
export function skipJsonSpace(bytes: Uint8Array, at: number): number {
  let code = bytes[at]
  while (code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09) code = bytes[++at]
  return at
}

/** Returns the position after the string whose opening quote is at `start`; -1 also for a lone surrogate in it. */
export function stringEnd(bytes: Uint8Array, start: number): number {
  let lowAt = -1
  for (let at = start + 1; ; at++) {
    const code = bytes[at]
    if (code === quoteByte) return lowAt < 0 ? at + 1 : -1
    if (code === undefined || code < 0x20) return -1
    if (code !== backslashByte) continue
    if (lowAt >= 0 && at !== lowAt) return -1
    const escaped = bytes[at + 1]
    if (escaped !== 0x75) {
      if (lowAt >= 0 || !isShortEscape(escaped)) return -1
      at++
      continue
    }
    const unit = hexUnit(bytes, at + 2)
    if (unit < 0) return -1
    const isLow = (unit & 0xfc00) === 0xdc00
    if (isLow !== (lowAt >= 0)) return -1
    lowAt = (unit & 0xfc00) === 0xd800 ? at + 6 : -1
    at += 5
  }
}

/** True for the second character of `\" \\ \/ \b \f \n \r \t`. */
function isShortEscape(code: number | undefined): boolean {
  return code === quoteByte || code === backslashByte || code === 0x2f || code === 0x62 || code === 0x66
    || code === 0x6e || code === 0x72 || code === 0x74
}

/** Returns the UTF-16 unit that four hexadecimal digits denote, or -1. */
function hexUnit(bytes: Uint8Array, start: number): number {
  let unit = 0
  for (let at = start; at < start + 4; at++) {
    const code = bytes[at] ?? 0
    const letter = code | 0x20
    const digit = code >= zeroByte && code <= nineByte ? code - zeroByte
      : letter >= 0x61 && letter <= 0x66 ? letter - 0x57
      : -1
    if (digit < 0) return -1
    unit = unit * 16 + digit
  }
  return unit
}

export function numberEnd(bytes: Uint8Array, start: number): number {
  const first = bytes[start] === minusByte ? start + 1 : start
  let at = digitsEnd(bytes, first)
  if (at === first || (bytes[first] === zeroByte && at > first + 1)) return -1
  if (bytes[at] === pointByte) {
    const fraction = at + 1
    at = digitsEnd(bytes, fraction)
    if (at === fraction) return -1
  }
  if (bytes[at] !== 0x65 && bytes[at] !== 0x45) return at
  const sign = bytes[at + 1]
  const exponent = sign === 0x2b || sign === minusByte ? at + 2 : at + 1
  at = digitsEnd(bytes, exponent)
  return at === exponent ? -1 : at
}

function digitsEnd(bytes: Uint8Array, at: number): number {
  let code = bytes[at]!
  while (code >= zeroByte && code <= nineByte) code = bytes[++at]!
  return at
}

const literals = [Buffer.from('true'), Buffer.from('false'), Buffer.from('null')]

/** Returns the position after `true`, `false` or `null`, or -1. */
export function literalEnd(bytes: Uint8Array, start: number): number {
  for (const literal of literals) {
    if (bytes[start] === literal[0] && literal.every((code, index) => bytes[start + index] === code)) {
      return start + literal.length
    }
  }
  return -1
}
