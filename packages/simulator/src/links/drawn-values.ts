import type { Dice } from '../world/dice.ts'

/** Numbers at the borders of encodings. All of them are exact as `double`. */
const borderNumbers = [0, 1, 127, 128, 16_384, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 48, Number.MAX_SAFE_INTEGER]
const border32 = [0, 1, 127, 128, 16_384, 2 ** 31, 2 ** 32 - 1]
const listMax = 3
const smallBytesMax = 300
/** More than one frame, and more than one message of the size that is usual. */
const largeBytes = 1_100_000
const borderChance = 0.2
const emptyChance = 0.1

/** Draws values of all kinds, of which hardly two are equal and few are those that an absent field has. */
export class DrawnValues {
  readonly #dice: Dice
  #large: boolean

  /** @param large whether the first bytes that are drawn are more than 1 MiB */
  constructor(dice: Dice, large = false) {
    this.#dice = dice
    this.#large = large
  }

  /** Whether no bytes were drawn yet although the first ones are to be large. */
  get owesLarge(): boolean { return this.#large }

  flag(): boolean { return this.#dice.chance(0.5) }

  /** Draws the value of a field that is either true or absent. */
  mark(): true | undefined { return this.flag() ? true : undefined }

  /** Draws a text that is not empty. */
  word(): string {
    return this.#dice.pick(['a', 'key/\u00e4', '\u{1f600}', '\u0000', 'x'.repeat(200)]) + this.#dice.hash().slice(0, 8)
  }

  text(): string { return this.#dice.chance(emptyChance) ? '' : this.word() }

  /** Draws a sort key, which has a character for each byte. */
  key(): string {
    return this.#dice.chance(emptyChance) ? '' : Buffer.from(this.#dice.hash(), 'hex').toString('latin1')
  }

  /** Draws an integer from 0 to 2^53 - 1. */
  count(): number {
    return this.#dice.chance(borderChance) ? this.#dice.pick(borderNumbers) : 1 + this.#dice.seed() * 1000
  }

  /** Draws an integer from 0 to 2^32 - 1. */
  short(): number { return this.#dice.chance(borderChance) ? this.#dice.pick(border32) : this.#dice.seed() }

  bytes(): Uint8Array {
    const length = this.#large ? largeBytes : this.#dice.chance(emptyChance) ? 0 : this.#dice.integer(1, smallBytesMax)
    this.#large = false
    return Buffer.alloc(length, this.#dice.hash())
  }

  /** Draws the hash of content, in lower-case hex. */
  hash(): string { return this.#dice.hash() + this.#dice.hash() }

  /** Draws the MD5 of content in base64. */
  digest(): string { return Buffer.from(this.#dice.hash(), 'hex').toString('base64') }

  maybe<Value>(draw: () => Value): Value | undefined { return this.flag() ? draw() : undefined }

  nullable<Value>(draw: () => Value): Value | null { return this.flag() ? draw() : null }

  list<Value>(draw: () => Value, min = 0): Value[] {
    return Array.from({ length: this.#dice.integer(min, listMax) }, draw)
  }

  /** Draws a list that is absent when it would be empty. */
  some<Value>(draw: () => Value): Value[] | undefined { return this.maybe(() => this.list(draw, 1)) }

  of<Value>(...values: readonly Value[]): Value { return this.#dice.pick(values) }

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
}
