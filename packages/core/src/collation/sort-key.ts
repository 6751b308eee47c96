/**
 * Binary sort keys of JSON values, as text with a character from U+0000 to U+00FF for each byte
 * (docs/decisions/0010-index-store.md). Comparing two keys with `<` compares the values in the order of views
 * (docs/decisions/0015-collation.md).
 *
 *     value  = null | false | true | number | string | array | object
 *     null, false, true = its tag
 *     number = tag, 8 bytes
 *     string = tag, the bytes of the collation, which contain no 00, 00
 *     array  = tag, values, 00
 *     object = tag, for each member its name (a string) and its value, 00
 *
 * All tags are greater than 00, so that a shorter array is less than a longer one that starts with it. The end of a key
 * follows from its bytes, so no key is the beginning of another one, and an index may append a document's id.
 */
import { jsonDepthMax, tooDeep } from '../json/json-limits.ts'
import { KeyBytes } from './key-bytes.ts'
import { RawStringKeys } from './raw-string-key.ts'
import { RootStringKeys } from './root-string-key.ts'

/**
 * How values are ordered. `root`: null, false, true, numbers, strings, arrays, objects, with strings in the root
 * collation of Unicode. `raw`: numbers, false, null, true, objects, arrays, strings, with strings by their UTF-8 bytes.
 */
export type Collation = 'root' | 'raw'

interface Tags {
  readonly null: number
  readonly false: number
  readonly true: number
  readonly number: number
  readonly string: number
  readonly array: number
  readonly object: number
}

const tagsOf: Readonly<Record<Collation, Tags>> = {
  root: { null: 1, false: 2, true: 3, number: 4, string: 5, array: 6, object: 7 },
  raw: { number: 1, false: 2, null: 3, true: 4, object: 5, array: 6, string: 7 },
}

const end = 0
const numberBytes = 8
/** Greater than every byte that can follow in a key, and than every byte of a document's id. */
const aboveAll = '\u00ff'

/** Makes sort keys. It keeps memory from one key to the next, so it should be used for many keys. */
export class SortKeyEncoder {
  readonly #tags: Tags
  readonly #strings: RootStringKeys | RawStringKeys
  readonly #key = new KeyBytes()
  readonly #number = new DataView(new ArrayBuffer(numberBytes))

  constructor(collation: Collation = 'root') {
    this.#tags = tagsOf[collation]
    this.#strings = collation === 'root' ? new RootStringKeys() : new RawStringKeys()
  }

  /**
   * Returns the sort key of a value. Two values have the same key if and only if the collation regards them as equal:
   * for `root` also strings that ICU regards as equal, such as composed and decomposed letters; 0 and -0; and integers
   * that have the same double.
   *
   * @param value as JSON.parse returns it
   * @throws ApiError `bad_request` for a key of more than `sortKeyBytesMax` bytes, a string of more UTF-16 units, or
   * nesting deeper than `jsonDepthMax`; TypeError for what JSON cannot contain
   */
  encode(value: unknown): string {
    this.#key.clear()
    this.#write(value, 0)
    return this.#key.text()
  }

  /**
   * Returns the text with which the keys of all strings begin that start with `text`, as short as needed for that. The
   * keys of some other strings begin with it, too: for `root`, a difference in case or accents is not in it.
   *
   * @throws ApiError `bad_request` as `encode`
   */
  encodePrefix(text: string): string {
    this.#key.clear()
    this.#key.push(this.#tags.string)
    this.#strings.writePrefix(text, this.#key)
    return this.#key.text()
  }

  /**
   * Returns the part of an array's key that contains its first elements, by which rows are grouped with `group_level`:
   * two keys are in one group if and only if their parts are equal. Keys of other values, and of arrays with fewer
   * elements, are returned whole.
   *
   * @param key that this encoder has made
   * @param elements number of elements, at least 1
   */
  groupKey(key: string, elements: number): string {
    if (key.charCodeAt(0) !== this.#tags.array) return key
    let at = 1
    for (let left = elements; left > 0; left--) {
      if (key.charCodeAt(at) === end) return key
      at = this.#endOfValue(key, at)
    }
    return key.slice(0, at)
  }

  #write(value: unknown, depth: number): void {
    switch (typeof value) {
      case 'string': return this.#writeString(value)
      case 'number': return this.#writeNumber(value)
      case 'boolean': return this.#key.push(value ? this.#tags.true : this.#tags.false)
      case 'object': return value === null ? this.#key.push(this.#tags.null) : this.#writeContainer(value, depth + 1)
      default: throw new TypeError(`JSON has no values of type ${typeof value}`)
    }
  }

  #writeString(text: string): void {
    this.#key.push(this.#tags.string)
    this.#strings.write(text, this.#key)
  }

  /** Writes a double such that its bytes have the order of the numbers: negative ones inverted, others with a sign. */
  #writeNumber(value: number): void {
    if (!Number.isFinite(value)) throw new TypeError(`JSON has no number ${value}`)
    this.#key.push(this.#tags.number)
    // Adding 0 makes 0 of -0.
    this.#number.setFloat64(0, value + 0)
    const inverted = value < 0 ? 0xff : 0
    this.#key.push(this.#number.getUint8(0) ^ (inverted | 0x80))
    for (let i = 1; i < numberBytes; i++) this.#key.push(this.#number.getUint8(i) ^ inverted)
  }

  #writeContainer(value: object, depth: number): void {
    if (depth > jsonDepthMax) throw tooDeep()
    if (Array.isArray(value)) {
      this.#key.push(this.#tags.array)
      for (const element of value) this.#write(element, depth)
    } else {
      this.#key.push(this.#tags.object)
      for (const [name, member] of Object.entries(value)) {
        this.#writeString(name)
        this.#write(member, depth)
      }
    }
    this.#key.push(end)
  }

  #endOfValue(key: string, start: number): number {
    let at = start
    let depth = 0
    do {
      const tag = key.charCodeAt(at)
      if (tag === this.#tags.number) at += numberBytes
      else if (tag === this.#tags.string) at = key.indexOf('\0', at)
      else if (tag === this.#tags.array || tag === this.#tags.object) depth++
      else if (tag === end) depth--
      at++
    } while (depth > 0)
    return at
  }
}

/** Returns the least text that is greater than all texts that start with the prefix, which is not empty. */
export function afterPrefix(prefix: string): string {
  const last = prefix.charCodeAt(prefix.length - 1)
  const shorter = prefix.slice(0, -1)
  return last === 0xff ? afterPrefix(shorter) : shorter + String.fromCharCode(last + 1)
}

/**
 * Returns a text that is greater than all keys that start with the prefix, whatever document's id follows them, and
 * less than all keys that are greater than these.
 *
 * @param prefix a key, or a part of a key that `groupKey` returned
 */
export function afterKeysWith(prefix: string): string {
  return prefix + aboveAll
}
