/**
 * Compact JSON text that keeps what JavaScript values cannot: digits beyond 2^53, `1.0` beside `1`, and member
 * names like `"1"` in their place. Works on text that JSON.parse has accepted. Strings come out as
 * JSON.stringify writes them, numbers as written (`-0` as `0`), repeated names once with the last value.
 */
import { ApiError } from '../errors.ts'
import { stringEnd } from './json-text.ts'

/**
 * A number token that may not survive: 16 or more digits, an exponent, a fraction that ends in 0 or starts with
 * six zeros. It stands between structural characters, so that most digits inside strings (times!) do not count.
 */
const RISKY_NUMBER = /[:,[\s](-?(?:[0-9]{16}|[0-9]+\.[0-9]*(?:0(?![0-9])|[eE])|[0-9]+[eE]|[0-9.]{17}|0\.0{6})[0-9.eE+-]*)(?=[\s,}\]])/
/** A member name that JavaScript would move to the front, perhaps written with escapes. */
const INTEGER_NAME = /"(?:0|[1-9][0-9]{0,9})"\s*:|\\u003[0-9]/

/** False when `JSON.stringify(JSON.parse(text))` changes nothing but white space and escapes. Errs towards true. */
export function needsExactText(text: string): boolean {
  if (INTEGER_NAME.test(text)) return true
  if (!RISKY_NUMBER.test(text)) return false
  for (const match of text.matchAll(new RegExp(RISKY_NUMBER, 'g'))) if (!isCanonical(match[1]!)) return true
  return false
}

function isCanonical(number: string): boolean {
  const value = Number(number)
  return String(value) === number && (!Number.isInteger(value) || Number.isSafeInteger(value)) && !/[eE]/.test(number)
}

/** The members of an object text: names (unescaped) with compact value texts, last value at the first place. */
export function exactMembers(text: string): Map<string, string> {
  return new ExactScanner(text).members()
}

/** Slices of the elements of an array text, not compacted. */
export function elementSlices(text: string): string[] {
  return new ExactScanner(text).elements()
}

/** Slice of the last member of that name of an object text, not compacted. */
export function memberSlice(text: string, name: string): string | undefined {
  return new ExactScanner(text).lastMember(name)
}

class ExactScanner {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  members(): Map<string, string> {
    const members = new Map<string, string>()
    this.#eachMember(name => {
      members.set(name, this.#compact())
    })
    return members
  }

  lastMember(wanted: string): string | undefined {
    let found: string | undefined
    this.#eachMember(name => {
      const slice = this.#skip()
      if (name === wanted) found = slice
    })
    return found
  }

  elements(): string[] {
    const slices: string[] = []
    this.#eachElement(() => {
      slices.push(this.#skip())
    })
    return slices
  }

  /** White space only; returns the code of what follows. */
  #next(): number {
    let code = this.#text.charCodeAt(this.#at)
    while (code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09) code = this.#text.charCodeAt(++this.#at)
    return code
  }

  #eachMember(visit: (name: string) => void): void {
    this.#next()
    this.#at++
    if (this.#next() === 0x7d) {
      this.#at++
      return
    }
    for (;;) {
      this.#next()
      const name = JSON.parse(this.#string()) as string
      this.#next()
      this.#at++ // the colon
      visit(name)
      const code = this.#next()
      this.#at++
      if (code === 0x7d) return
    }
  }

  #eachElement(visit: () => void): void {
    this.#next()
    this.#at++
    if (this.#next() === 0x5d) {
      this.#at++
      return
    }
    for (;;) {
      visit()
      const code = this.#next()
      this.#at++
      if (code === 0x5d) return
    }
  }

  /** Moves behind the string at this place and returns it with its quotes, as written. */
  #string(): string {
    const start = this.#at
    this.#at = stringEnd(this.#text, start) + 1
    return this.#text.slice(start, this.#at)
  }

  /** Moves behind a literal or a number and returns it. */
  #token(): string {
    const start = this.#at
    for (;;) {
      const code = this.#text.charCodeAt(this.#at)
      // Behind a token: comma, closing bracket or brace, white space, the end (NaN).
      if (code === 0x2c || code === 0x5d || code === 0x7d || code <= 0x20 || Number.isNaN(code)) return this.#text.slice(start, this.#at)
      this.#at++
    }
  }

  /** Moves behind one value and returns its text as written. */
  #skip(): string {
    const first = this.#next()
    const start = this.#at
    if (first === 0x22) return this.#string()
    if (first !== 0x7b && first !== 0x5b) return this.#token()
    let depth = 0
    for (;;) {
      const code = this.#text.charCodeAt(this.#at)
      if (code === 0x22) {
        this.#at = stringEnd(this.#text, this.#at) + 1
        continue
      }
      this.#at++
      if (code === 0x7b || code === 0x5b) depth++
      else if ((code === 0x7d || code === 0x5d) && --depth === 0) return this.#text.slice(start, this.#at)
    }
  }

  /** Moves behind one value and returns it in compact form. Depth is bounded by `JSON_DEPTH_MAX`. */
  #compact(): string {
    const first = this.#next()
    if (first === 0x22) {
      const text = this.#string()
      return text.includes('\\') ? JSON.stringify(JSON.parse(text)) : text
    }
    if (first === 0x7b) return formatMembers(this.members())
    if (first === 0x5b) {
      const items: string[] = []
      this.#eachElement(() => {
        items.push(this.#compact())
      })
      return `[${items.join()}]`
    }
    return exactToken(this.#token())
  }
}

function exactToken(token: string): string {
  if (token === '-0') return '0'
  if (/^[-0-9].*[.eE]/.test(token) && !Number.isFinite(Number(token))) {
    // CouchDB refuses what no double can hold, and so would every reader of the document.
    throw new ApiError('invalid_json')
  }
  return token
}

/** Object text of members whose values are JSON texts. */
export function formatMembers(members: ReadonlyMap<string, string>): string {
  const parts: string[] = []
  for (const [name, value] of members) parts.push(`${JSON.stringify(name)}:${value}`)
  return `{${parts.join()}}`
}
