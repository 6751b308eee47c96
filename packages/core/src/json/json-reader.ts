/** Reads one JSON value (RFC 8259) in slices. The bytes must be valid UTF-8, but need not be valid JSON. */
import { ApiError } from '../errors.ts'
import {
  closeBraceByte, closeBracketByte, colonByte, commaByte, openBraceByte, openBracketByte, quoteByte,
} from './json-bytes.ts'
import { literalEnd, numberEnd, skipJsonSpace, stringEnd } from './json-grammar.ts'
import { jsonDepthMax, tooDeep } from './json-limits.ts'

/** Bytes of one slice. */
const sliceBytes = 64 * 1024

const valueState = 0
const valueOrEndState = 1
const nameState = 2
const nameOrEndState = 3
const commaOrEndState = 4
type Expected =
  | typeof valueState
  | typeof valueOrEndState
  | typeof nameState
  | typeof nameOrEndState
  | typeof commaOrEndState

/** Calls the methods of a derived class for each token that it reads. */
export abstract class JsonReader {
  protected readonly bytes: Uint8Array
  /** The opening brackets that are not closed yet, outermost first. */
  protected readonly open: number[] = []
  #at: number
  #expected: Expected = valueState

  constructor(bytes: Uint8Array, start: number) {
    this.bytes = bytes
    this.#at = start
  }

  /** Called when a bracket opens; `open` contains it already. */
  protected abstract opened(code: number): void
  /** Called for a member's name; `start` and `end` include its quotes. */
  protected abstract named(start: number, end: number): void
  /** Called for a string, number or literal. */
  protected abstract scalar(start: number, end: number): void
  /** Called when the innermost bracket closes; `open` still contains it. */
  protected abstract closed(): void

  /** The position after the value, once `run` has returned true. */
  get end(): number {
    return this.#at
  }

  /**
   * Reads about one slice; returns true at the end of the value.
   *
   * @throws ApiError `invalid_json`; `bad_request` when nested deeper than `jsonDepthMax`
   */
  run(): boolean {
    const until = this.#at + sliceBytes
    while (this.#at < until) {
      this.#at = this.#token(skipJsonSpace(this.bytes, this.#at))
      if (this.open.length === 0) return true
    }
    return false
  }

  /** Reads the token at `at` and returns the position after it. */
  #token(at: number): number {
    const code = this.bytes[at]
    const expected = this.#expected
    if (expected === commaOrEndState) {
      if (code !== commaByte) return this.#close(code, at)
      this.#expected = this.open.at(-1) === openBraceByte ? nameState : valueState
      return at + 1
    }
    if (expected === nameState || expected === nameOrEndState) {
      if (code === quoteByte) return this.#name(at)
      if (expected === nameState) throw invalid()
      return this.#close(code, at)
    }
    if (code === openBraceByte || code === openBracketByte) {
      if (this.open.length === jsonDepthMax) throw tooDeep()
      this.open.push(code)
      this.opened(code)
      this.#expected = code === openBraceByte ? nameOrEndState : valueOrEndState
      return at + 1
    }
    if (expected === valueOrEndState && code === closeBracketByte) return this.#close(code, at)
    this.#expected = commaOrEndState
    const end = valid(
      code === quoteByte ? stringEnd(this.bytes, at)
        : code !== undefined && code >= 0x61 ? literalEnd(this.bytes, at)
        : numberEnd(this.bytes, at),
    )
    this.scalar(at, end)
    return end
  }

  #name(at: number): number {
    const end = valid(stringEnd(this.bytes, at))
    this.named(at, end)
    const colon = skipJsonSpace(this.bytes, end)
    if (this.bytes[colon] !== colonByte) throw invalid()
    this.#expected = valueState
    return colon + 1
  }

  #close(code: number | undefined, at: number): number {
    if (code !== (this.open.at(-1) === openBraceByte ? closeBraceByte : closeBracketByte)) throw invalid()
    this.closed()
    this.open.pop()
    this.#expected = commaOrEndState
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
