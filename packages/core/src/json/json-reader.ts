/** Moves over one JSON value (RFC 8259) in slices. The bytes must be UTF-8 and may otherwise be anything. */
import { ApiError } from '../errors.ts'
import { CLOSE_BRACE, CLOSE_BRACKET, COLON, COMMA, OPEN_BRACE, OPEN_BRACKET, QUOTE } from './json-bytes.ts'
import { literalEnd, numberEnd, skipJsonSpace, stringEnd } from './json-grammar.ts'
import { JSON_DEPTH_MAX, tooDeep } from './json-limits.ts'

/** Bytes of one slice. */
const sliceBytes = 64 * 1024

const VALUE = 0
const VALUE_OR_END = 1
const NAME = 2
const NAME_OR_END = 3
const COMMA_OR_END = 4
type Expected = typeof VALUE | typeof VALUE_OR_END | typeof NAME | typeof NAME_OR_END | typeof COMMA_OR_END

/** What it finds is told to the methods of a derived class. */
export abstract class JsonReader {
  protected readonly bytes: Uint8Array
  /** The brackets that are open, outermost first. */
  protected readonly open: number[] = []
  #at: number
  #expected: Expected = VALUE

  constructor(bytes: Uint8Array, start: number) {
    this.bytes = bytes
    this.#at = start
  }

  /** A bracket opens; it is in `open` already. */
  protected abstract opened(code: number): void
  /** A member's name, from its quote to behind its last one. */
  protected abstract named(start: number, end: number): void
  /** A string, number or literal. */
  protected abstract scalar(start: number, end: number): void
  /** The innermost bracket closes; it is still in `open`. */
  protected abstract closed(): void

  /** Behind the value, once `run` has answered true. */
  get end(): number {
    return this.#at
  }

  /**
   * Goes on for about one slice; true at the end of the value.
   * @throws ApiError `invalid_json`; `bad_request` when nested deeper than `JSON_DEPTH_MAX`
   */
  run(): boolean {
    const until = this.#at + sliceBytes
    while (this.#at < until) {
      this.#at = this.#token(skipJsonSpace(this.bytes, this.#at))
      if (this.open.length === 0) return true
    }
    return false
  }

  /** Takes the token at this place and returns the byte behind it. */
  #token(at: number): number {
    const code = this.bytes[at]
    const expected = this.#expected
    if (expected === COMMA_OR_END) {
      if (code !== COMMA) return this.#close(code, at)
      this.#expected = this.open.at(-1) === OPEN_BRACE ? NAME : VALUE
      return at + 1
    }
    if (expected === NAME || expected === NAME_OR_END) {
      if (code === QUOTE) return this.#name(at)
      if (expected === NAME) throw invalid()
      return this.#close(code, at)
    }
    if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      if (this.open.length === JSON_DEPTH_MAX) throw tooDeep()
      this.open.push(code)
      this.opened(code)
      this.#expected = code === OPEN_BRACE ? NAME_OR_END : VALUE_OR_END
      return at + 1
    }
    if (expected === VALUE_OR_END && code === CLOSE_BRACKET) return this.#close(code, at)
    this.#expected = COMMA_OR_END
    const end = valid(code === QUOTE ? stringEnd(this.bytes, at) : code !== undefined && code >= 0x61 ? literalEnd(this.bytes, at) : numberEnd(this.bytes, at))
    this.scalar(at, end)
    return end
  }

  #name(at: number): number {
    const end = valid(stringEnd(this.bytes, at))
    this.named(at, end)
    const colon = skipJsonSpace(this.bytes, end)
    if (this.bytes[colon] !== COLON) throw invalid()
    this.#expected = VALUE
    return colon + 1
  }

  #close(code: number | undefined, at: number): number {
    if (code !== (this.open.at(-1) === OPEN_BRACE ? CLOSE_BRACE : CLOSE_BRACKET)) throw invalid()
    this.closed()
    this.open.pop()
    this.#expected = COMMA_OR_END
    return at + 1
  }
}

function valid(end: number): number {
  if (end < 0) throw invalid()
  return end
}

function invalid(): ApiError {
  return new ApiError('invalid_json')
}
