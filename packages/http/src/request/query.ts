/** Query parameters. Unknown ones are ignored; of a repeated one the last counts. */
import { ApiError, parseJson } from '@sectional/core'
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

  /** The same parameters with names in lower case. */
  lowerCase(): Query {
    return new Query(new Map([...this.#values].map(([name, value]) => [name.toLowerCase(), value])))
  }

  get isEmpty(): boolean { return this.#values.size === 0 }
  get(name: string): string | undefined { return this.#values.get(name) }
  has(name: string): boolean { return this.#values.has(name) }
  names(): Iterable<string> { return this.#values.keys() }
  entries(): Iterable<[string, string]> { return this.#values.entries() }

  /** Document dialect: only the exact text `true` counts. */
  flag(name: string): boolean { return this.#values.get(name) === 'true' }

  /** A JSON value, or undefined when the parameter is absent. */
  json(name: string): unknown {
    const text = this.#values.get(name)
    return text === undefined ? undefined : parseJson(text)
  }

  /** `r` and `w`: text that is no integer silently means the default. */
  quorum(name: 'r' | 'w'): number | undefined {
    const text = this.#values.get(name)
    return text === undefined ? undefined : readInteger(text)
  }
}

/** Stands for what is no UTF-8: no parameter means anything by it, and who asks for it says what it should be. */
const notText = '\uD800'

function decodeParameter(raw: string): string {
  return decodeText(raw, true, () => notText)
}

/**
 * View dialect.
 * @throws ApiError `query_parse_error` for anything but true and false
 */
export function strictBoolean(value: unknown): boolean {
  switch (typeof value === 'string' ? value.toLowerCase() : value) {
    case true: case 'true': return true
    case false: case 'false': return false
    default: throw new ApiError('query_parse_error', `Invalid boolean parameter: ${JSON.stringify(value)}`)
  }
}

/** As large as numbers of clients are taken: beyond, all mean the same, and sums of a few stay exact. */
const integerMax = 1e15

/** An integer in a query, at most `integerMax` either way. undefined: it is none. */
export function readInteger(text: string): number | undefined {
  return /^-?\d+$/.test(text) ? clamped(Number(text)) : undefined
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
