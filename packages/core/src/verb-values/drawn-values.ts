/** A source of random numbers, such as `SeededRandom`. */
export interface DrawSource {
  /** Returns a number from 0 to 1, without 1. */
  fraction(): number
}

/** Numbers at the borders of encodings. All of them are exact as `double`. */
const borderNumbers = [0, 1, 127, 128, 16_384, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 48, Number.MAX_SAFE_INTEGER]
const border32 = [0, 1, 127, 128, 16_384, 2 ** 31, 2 ** 32 - 1]
const listMax = 3
const word32Max = 0xffff_ffff
const smallBytesMax = 300
/** More than one frame, and more than one message of the size that is usual. */
const largeBytes = 1_100_000
const borderChance = 0.2
const emptyChance = 0.1

/** Draws values of all kinds, of which hardly two are equal and few are those that an absent field has. */
export class DrawnValues {
  readonly #source: DrawSource
  #large: boolean

  /** @param large whether the first bytes that are drawn are more than 1 MiB */
  constructor(source: DrawSource, large = false) {
    this.#source = source
    this.#large = large
  }

  /** Whether no bytes were drawn yet although the first ones are to be large. */
  get owesLarge(): boolean { return this.#large }

  flag(): boolean { return this.#chance(0.5) }

  /** Draws the value of a field that is either true or absent. */
  mark(): true | undefined { return this.flag() ? true : undefined }

  /** Draws a text that is not empty. */
  word(): string {
    return this.of('a', 'key/\u00e4', '\u{1f600}', '\u0000', 'x'.repeat(200)) + this.#digits().slice(0, 8)
  }

  text(): string { return this.#chance(emptyChance) ? '' : this.word() }

  /** Draws a sort key, which has a character for each byte. */
  key(): string {
    return this.#chance(emptyChance) ? '' : Buffer.from(this.#digits(), 'hex').toString('latin1')
  }

  /** Draws an integer from 0 to 2^53 - 1. */
  count(): number {
    return this.#chance(borderChance) ? this.of(...borderNumbers) : 1 + this.#integer(0, word32Max) * 1000
  }

  /** Draws an integer from 0 to 2^32 - 1. */
  short(): number { return this.#chance(borderChance) ? this.of(...border32) : this.#integer(0, word32Max) }

  bytes(): Uint8Array {
    const length = this.#large ? largeBytes : this.#chance(emptyChance) ? 0 : this.#integer(1, smallBytesMax)
    this.#large = false
    return Buffer.alloc(length, this.#digits())
  }

  /** Draws the hash of content, in lower-case hex. */
  hash(): string { return this.#digits() + this.#digits() }

  /** Draws the MD5 of content in base64. */
  digest(): string { return Buffer.from(this.#digits(), 'hex').toString('base64') }

  maybe<Value>(draw: () => Value): Value | undefined { return this.flag() ? draw() : undefined }

  nullable<Value>(draw: () => Value): Value | null { return this.flag() ? draw() : null }

  list<Value>(draw: () => Value, min = 0): Value[] {
    return Array.from({ length: this.#integer(min, listMax) }, draw)
  }

  /** Draws a list that is absent when it would be empty. */
  some<Value>(draw: () => Value): Value[] | undefined { return this.maybe(() => this.list(draw, 1)) }

  of<Value>(...values: readonly Value[]): Value { return values[this.#integer(0, values.length - 1)]! }

  /** Draws one of several forms of a value. */
  form<Forms extends readonly (() => unknown)[]>(...forms: Forms): ReturnType<Forms[number]> {
    return this.of(...forms)() as ReturnType<Forms[number]>
  }

  /** Draws the numbers of an object with random names. */
  counts(): Record<string, number> {
    return Object.fromEntries(this.list(() => [this.text(), this.count()] as const))
  }

  /** Draws a JSON value. */
  json(): unknown {
    return this.form(
      () => this.text(), () => this.count(), () => this.nullable(() => this.flag()),
      () => ({ text: this.text(), list: this.list(() => this.count()), bytes: Buffer.from(this.bytes()).toString() }),
    )
  }

  #chance(probability: number): boolean { return this.#source.fraction() < probability }

  #integer(min: number, max: number): number { return min + Math.floor(this.#source.fraction() * (max - min + 1)) }

  /** Draws 32 hexadecimal digits. */
  #digits(): string {
    return Array.from({ length: 4 }, () => this.#integer(0, word32Max).toString(16).padStart(8, '0')).join('')
  }
}
