/**
 * Checks of large JSON that run in slices and build no JavaScript values.
 *
 * JSON.parse cannot be interrupted, and the values that it builds can take many times the memory of the text: 127 MiB
 * of `{},{},..` exhaust the heap, and 8 MB of small objects with many different names take seconds.
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
/** The names of an object with at most this many members are compared in pairs, which needs no set. */
const pairedNamesMax = 6

export interface CheckedJson {
  /** The position after the value. */
  readonly end: number
  /** True when some object has two members of the same name. */
  readonly repeated: boolean
}

/**
 * Checks in slices that the object or array at `start` is valid JSON (RFC 8259) without lone surrogates. The bytes must
 * be valid UTF-8.
 *
 * @throws ApiError `invalid_json`; `bad_request` when nested deeper than `jsonDepthMax`
 */
export function* checkJson(bytes: Uint8Array, start: number): Generator<void, CheckedJson> {
  const check = new JsonCheck(bytes, start)
  while (!check.run()) yield
  return { end: check.end, repeated: check.repeated }
}

class JsonCheck extends JsonReader {
  /** By depth: the names that earlier slices held of the object that is open there; absent where there are none. */
  readonly #earlierNames: (Set<string> | undefined)[] = []
  /**
   * `#names`: start and end of each name that this slice held of the objects that are open, outermost object first.
   * `#namesFrom`: by depth, the index in `#names` at which the names of that object begin.
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

  /** Looks for repeated names in the object that ends, which is open at `depth`. */
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

  /** Adds names of this slice to the names of earlier slices. */
  #collect(known: Set<string>, from: number, to: number): void {
    for (let i = from; i < to; i += 2) {
      const name = this.#plainNameAt(i)
      if (known.has(name)) this.repeated = true
      else known.add(name)
    }
  }

  /** Keeps the names of all open objects at the end of a slice, because these objects continue in the next one. */
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

/** Returns a member's name as JSON text in one spelling. `start` and `end` include the name's quotes. */
export function plainName(bytes: Uint8Array, start: number, end: number): string {
  const text = textOf(bytes, start, end)
  return text.includes('\\') ? JSON.stringify(JSON.parse(text)) : text
}

function hasEscape(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (bytes[at] === backslashByte) return true
  return false
}

export interface StructureLimits {
  /** Most values. A member counts twice: as a name and as a value. */
  readonly valuesMax: number
  /** The setting that determines `valuesMax`, for the error text. */
  readonly setting: string
}

/**
 * Checks, in slices, the depth and the number of values of JSON that will then be parsed in one piece. The bytes need
 * not be valid JSON.
 *
 * @returns the number of values and names of members
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
  const count = `its JSON has more than ${valuesMax} values and names of members, which is ${setting}`
  return new ApiError('too_large', `the request entity is too large: ${count}; send several smaller requests`)
}
