/** Builds the values of large JSON in slices, because JSON.parse cannot be interrupted. */
import { ApiError } from '../errors.ts'
import { backslashByte, openBraceByte, quoteByte, textOf } from './json-bytes.ts'
import { JsonReader } from './json-reader.ts'

type Container = unknown[] | Record<string, unknown>

/**
 * How numbers are read that a double does not hold. `rounded`: as JSON.parse does. `finite`: also rounded, and those
 * beyond the range of doubles are refused. `exact`: such that JSON.stringify writes them as in the text.
 */
export type NumberReading = 'rounded' | 'finite' | 'exact'

/**
 * Parses the object or array that starts at `start` of UTF-8 bytes.
 *
 * @throws ApiError `invalid_json`; `bad_request` when nested deeper than `jsonDepthMax`
 */
export function* readValue(
  bytes: Uint8Array, start: number, numbers: NumberReading = 'rounded',
): Generator<void, { readonly value: object; readonly end: number }> {
  const builder = new ValueBuilder(bytes, start, numbers)
  while (!builder.run()) yield
  return { value: builder.value!, end: builder.end }
}

/** Returns a value that JSON.stringify writes as this text of a number. */
export function rawNumber(text: string): unknown {
  return exactJson.rawJSON(text)
}

/** TypeScript does not declare this function yet (https://github.com/tc39/proposal-json-parse-with-source). */
const exactJson = JSON as unknown as { rawJSON(text: string): unknown }

class ValueBuilder extends JsonReader {
  readonly #numbers: NumberReading
  /** The containers that are not closed yet, and for each the name of the member whose value it is. */
  readonly #containers: Container[] = []
  readonly #names: string[] = []
  #name = ''
  value: object | undefined

  constructor(bytes: Uint8Array, start: number, numbers: NumberReading) {
    super(bytes, start)
    this.#numbers = numbers
  }

  protected override opened(code: number): void {
    this.#containers.push(code === openBraceByte ? {} : [])
    this.#names.push(this.#name)
  }

  protected override named(start: number, end: number): void {
    this.#name = this.#string(start, end)
  }

  protected override scalar(start: number, end: number): void {
    this.#add(this.#scalar(start, end))
  }

  protected override closed(): void {
    const container = this.#containers.pop()!
    this.#name = this.#names.pop()!
    if (this.#containers.length === 0) this.value = container
    else this.#add(container)
  }

  #add(value: unknown): void {
    const container = this.#containers.at(-1)!
    if (Array.isArray(container)) container.push(value)
    else if (this.#name === '__proto__') {
      Object.defineProperty(container, this.#name, { value, enumerable: true, configurable: true, writable: true })
    } else container[this.#name] = value
  }

  #scalar(start: number, end: number): unknown {
    switch (this.bytes[start]) {
      case quoteByte: return this.#string(start, end)
      case 0x74: return true
      case 0x66: return false
      case 0x6e: return null
      default: return this.#number(start, end)
    }
  }

  #string(start: number, end: number): string {
    for (let at = start; at < end; at++) {
      if (this.bytes[at] === backslashByte) return JSON.parse(textOf(this.bytes, start, end)) as string
    }
    return textOf(this.bytes, start + 1, end - 1)
  }

  #number(start: number, end: number): unknown {
    const text = textOf(this.bytes, start, end)
    const value = Number(text)
    if (this.#numbers === 'finite' && !Number.isFinite(value)) throw new ApiError('invalid_json')
    return this.#numbers === 'exact' && String(value) !== text ? rawNumber(text) : value
  }
}
