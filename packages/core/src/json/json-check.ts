/**
 * Checks of large JSON that run in slices and build no JavaScript values.
 *
 * JSON.parse cannot be interrupted, and what it builds can take many times the bytes of the text: 127 MiB of
 * `{},{},..` exhaust the heap, and 8 MB of small objects with many different names take it seconds.
 */
import { ApiError } from '../errors.ts'
import {
  backslashByte, closeBraceByte, closeBracketByte, colonByte, commaByte, openBraceByte, openBracketByte, quoteByte,
  skipString, textOf,
} from './json-bytes.ts'
import { JsonReader } from './json-reader.ts'
import { jsonDepthMax, tooDeep } from './json-limits.ts'

/** Bytes between two yields. */
const sliceBytes = 64 * 1024
/** Names of one object up to so many are compared in pairs. */
const pairedNamesMax = 6

export interface CheckedJson {
  /** The byte behind the value. */
  readonly end: number
  /** Some object has two members of one name. */
  readonly repeated: boolean
}

/**
 * Makes sure that the object or array at `start` is valid JSON (RFC 8259) without lone surrogates. The bytes must be
 * UTF-8.
 *
 * @throws ApiError `invalid_json`; `bad_request` when nested deeper than `jsonDepthMax`
 */
export function* checkJson(bytes: Uint8Array, start: number): Generator<void, CheckedJson> {
  const check = new JsonCheck(bytes, start)
  while (!check.run()) yield
  return { end: check.end, repeated: check.repeated }
}

class JsonCheck extends JsonReader {
  /** For each open object the names that earlier slices held; absent where there are none. */
  readonly #earlierNames: (Set<string> | undefined)[] = []
  /**
   * First and last byte of the names in this slice of the objects that are open, and where those of each object begin.
   */
  readonly #names: number[] = []
  readonly #namesFrom: number[] = []
  repeated = false

  override run(): boolean {
    const ended = super.run()
    if (!ended) this.#keepNames()
    return ended
  }

  protected override opened(): void {
    this.#namesFrom.push(this.#names.length)
  }

  protected override named(start: number, end: number): void {
    this.#names.push(start, end)
  }

  protected override scalar(): void {}

  protected override closed(): void {
    const depth = this.open.length - 1
    this.#compareNames(depth)
    if (this.#earlierNames.length > depth) this.#earlierNames.length = depth
    this.#names.length = this.#namesFrom.pop()!
  }

  /** Looks for repeated names in an object that ends. */
  #compareNames(depth: number): void {
    const names = this.#names
    const from = this.#namesFrom[depth]!
    const earlier = this.#earlierNames[depth]
    if (earlier !== undefined || names.length - from > 2 * pairedNamesMax) {
      return this.#collect(earlier ?? new Set(), from, names.length)
    }
    for (let i = from + 2; i < names.length; i += 2) {
      for (let j = from; j < i; j += 2) if (this.#sameName(i, j)) this.repeated = true
    }
  }

  #sameName(i: number, j: number): boolean {
    const bytes = this.bytes
    const names = this.#names
    const [a, b, length] = [names[i]!, names[j]!, names[i + 1]! - names[i]!]
    if (length === names[j + 1]! - b) {
      let same = 0
      while (same < length && bytes[a + same] === bytes[b + same]) same++
      if (same === length) return true
    }
    return (hasEscape(bytes, a, a + length) || hasEscape(bytes, b, names[j + 1]!))
      && this.#plainNameAt(i) === this.#plainNameAt(j)
  }

  #plainNameAt(i: number): string {
    return plainName(this.bytes, this.#names[i]!, this.#names[i + 1]!)
  }

  /** Adds names of this slice to those of earlier ones. */
  #collect(known: Set<string>, from: number, to: number): void {
    for (let i = from; i < to; i += 2) {
      const name = this.#plainNameAt(i)
      if (known.has(name)) this.repeated = true
      else known.add(name)
    }
  }

  /** At the end of a slice: each open object goes on in the next one. */
  #keepNames(): void {
    for (const [depth, code] of this.open.entries()) {
      const from = this.#namesFrom[depth]!
      const to = this.#namesFrom[depth + 1] ?? this.#names.length
      if (code === openBraceByte && to > from) this.#collect(this.#earlierNames[depth] ??= new Set(), from, to)
    }
    this.#names.length = 0
    this.#namesFrom.fill(0)
  }
}

/** A member's name, from its quote to behind its last one, as JSON text in one spelling. */
export function plainName(bytes: Uint8Array, start: number, end: number): string {
  const text = textOf(bytes, start, end)
  return text.includes('\\') ? JSON.stringify(JSON.parse(text)) : text
}

function hasEscape(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (bytes[at] === backslashByte) return true
  return false
}

export interface StructureLimits {
  /** Values (members count twice: as a name and as a value). */
  readonly valuesMax: number
  /** The setting that `valuesMax` comes from. */
  readonly setting: string
}

/**
 * Looks at JSON that will be parsed at once: how deep it is nested and how many values it holds. The bytes need not be
 * JSON.
 *
 * @returns values and names of members
 * @throws ApiError `bad_request` when nested deeper than `jsonDepthMax`, `too_large` for too many values
 */
export function* checkStructure(
  bytes: Uint8Array, { valuesMax, setting }: StructureLimits, start = 0, end = bytes.length,
): Generator<void, number> {
  let depth = 0
  let values = 1
  let yieldAt = start + sliceBytes
  for (let at = start; at < end;) {
    const code = bytes[at]!
    if (code === quoteByte) at = skipString(bytes, at)
    else {
      at++
      if (code === commaByte || code === colonByte) values++
      else if (code === openBraceByte || code === openBracketByte) {
        values++
        if (++depth > jsonDepthMax) throw tooDeep()
      } else if (code === closeBraceByte || code === closeBracketByte) depth--
    }
    if (values > valuesMax) throw tooManyValues(valuesMax, setting)
    if (at < yieldAt) continue
    yield
    yieldAt = at + sliceBytes
  }
  return values
}

function tooManyValues(valuesMax: number, setting: string): ApiError {
  return new ApiError('too_large', `the request entity is too large: its JSON has more than ${valuesMax} values and names of members, which is ${setting}; send several smaller requests`)
}
