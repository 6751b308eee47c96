/** Query parameters. Unknown ones are ignored; the last value of a repeated one counts. */
import { ApiError, parseFiniteJson } from '@sectional/core'
import { decodeText } from './request-path.ts'

export class Query {
  static readonly empty = new Query(new Map())
  readonly #values: ReadonlyMap<string, string>

  constructor(values: ReadonlyMap<string, string>) {
    this.#values = values
  }

  /** @throws ApiError `invalid_url_encoding` */
  static parse(search: string): Query {
    if (search === '') return Query.empty
    const values = new Map<string, string>()
    for (const pair of search.split('&')) {
      if (pair === '') continue
      const equals = pair.indexOf('=')
      if (equals < 0) values.set(decodeParameter(pair), '')
      else values.set(decodeParameter(pair.slice(0, equals)), decodeParameter(pair.slice(equals + 1)))
    }
    return new Query(values)
  }

  /** Returns the same parameters with names in lower case. */
  lowerCase(): Query {
    return new Query(new Map([...this.#values].map(([name, value]) => [name.toLowerCase(), value])))
  }

  /** Returns these parameters with another one, or with another value of one. */
  with(name: string, value: string): Query {
    return new Query(new Map(this.#values).set(name, value))
  }

  get isEmpty(): boolean { return this.#values.size === 0 }
  get(name: string): string | undefined { return this.#values.get(name) }
  has(name: string): boolean { return this.#values.has(name) }
  names(): Iterable<string> { return this.#values.keys() }
  entries(): Iterable<[string, string]> { return this.#values.entries() }

  /** Returns names and values, with U+FFFD for bytes that are not UTF-8, for code that shows or passes on all. */
  unicodeEntries(): [string, string][] {
    return [...this.#values].map(([name, value]) => [name.toWellFormed(), value.toWellFormed()])
  }

  /** Reads a flag of a document request: only the exact text `true` sets it. */
  flag(name: string): boolean { return this.#values.get(name) === 'true' }

  /** Returns the parsed JSON value, or undefined when the parameter is absent. */
  json(name: string): unknown {
    const text = this.#values.get(name)
    return text === undefined ? undefined : parseFiniteJson(text)
  }

  /** Returns `r` or `w`. Text that is not an integer selects the default, as in CouchDB. */
  quorum(name: 'r' | 'w'): number | undefined {
    const text = this.#values.get(name)
    return text === undefined ? undefined : readInteger(text)
  }
}

/** Stands for bytes that are not UTF-8. */
const notText = '\uD800'

/**
 * Decodes a name or value. No parameter accepts one with bytes that are not UTF-8, so the code that reads the parameter
 * reports the error.
 */
function decodeParameter(raw: string): string {
  return decodeText(raw, true, () => raw.replaceAll('+', ' ').replace(/(?:%[0-9a-f]{2})+/gi, decodeBytes))
}

function decodeBytes(escapes: string): string {
  return Buffer.from(escapes.replaceAll('%', ''), 'hex').toString().replaceAll('\uFFFD', notText)
}

/**
 * Reads a boolean of a view or list request.
 * @throws ApiError `query_parse_error` for anything but true and false
 */
export function strictBoolean(value: unknown): boolean {
  switch (typeof value === 'string' ? value.toLowerCase() : value) {
    case true: case 'true': return true
    case false: case 'false': return false
    default: throw new ApiError('query_parse_error', `Invalid boolean parameter: ${JSON.stringify(value)}`)
  }
}

/** Integers are limited to this absolute value: larger ones have the same effect, and sums of a few stay exact. */
const integerMax = 1e15

/**
 * Parses an integer and limits it to `integerMax` in both directions. Returns undefined when the text is not an
 * integer.
 */
export function readInteger(text: string): number | undefined {
  return /^[+-]?\d+$/.test(text) ? clamped(Number(text)) : undefined
}

function clamped(number: number): number {
  return Math.max(-integerMax, Math.min(integerMax, number))
}

/** @throws ApiError `query_parse_error` for anything but an integer of at least 0 */
export function nonNegativeInteger(value: unknown): number {
  const number = typeof value === 'string' ? readInteger(value) : value
  if (typeof number !== 'number' || !Number.isInteger(number)) {
    throw new ApiError('query_parse_error', `Invalid value for integer: ${JSON.stringify(value)}`)
  }
  if (number < 0) {
    throw new ApiError('query_parse_error', `Invalid value for positive integer: ${JSON.stringify(value)}`)
  }
  return clamped(number)
}
