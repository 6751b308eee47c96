/** Random strings of many kinds, with which sort keys are compared with other implementations. */
import type { ContractionNode } from '../../src/collation/contraction-node.ts'
import { startsContraction } from '../../src/collation/mapping.ts'
import { decodeRootTable } from '../../src/collation/root-table.ts'

type Kind = (random: RandomStrings) => string

const ranges = {
  ascii: [[0x20, 0x7e]],
  latin: [[0x41, 0x5a], [0x61, 0x7a], [0xc0, 0x24f], [0x1e00, 0x1eff]],
  bmp: [[0, 0xd7ff], [0xe000, 0xffff]],
  han: [[0x4e00, 0x4e80], [0x9f00, 0xa000], [0x3400, 0x4dbf], [0xf900, 0xfaff], [0x20000, 0x33479], [0x2f00, 0x2fd5]],
  hangul: [[0xac00, 0xd7a3], [0x1100, 0x11ff], [0xa960, 0xa97c], [0xd7b0, 0xd7fb], [0x3130, 0x318e]],
  kana: [[0x3041, 0x30ff], [0x31f0, 0x31ff], [0xff66, 0xff9f], [0x1b000, 0x1b122]],
  emoji: [[0x1f300, 0x1faff], [0x1f1e6, 0x1f1ff], [0x200d, 0x200d], [0xfe0f, 0xfe0f], [0x1f3fb, 0x1f3ff]],
  supplementary: [[0x10000, 0x1ffff], [0xe0000, 0xe01ef], [0x100000, 0x10ffff]],
  symbols: [[0x20, 0x40], [0x5b, 0x60], [0x7b, 0xbf], [0x2000, 0x2bff], [0x3000, 0x303f], [0xfe10, 0xfe6b], [0, 0x1f]],
  scripts: [[0x370, 0x1fff], [0xa000, 0xabff], [0x10800, 0x11fff]],
} satisfies Record<string, readonly (readonly [number, number])[]>

/** The kinds of strings by name. */
export const kinds: Readonly<Record<string, Kind>> = {
  'ASCII': random => random.string('ascii', 12),
  'accented Latin': random => random.join(8, () => random.character('latin') + (random.below(3) ? '' : random.mark())),
  'combining marks': random => random.join(3, () => random.character('scripts') + random.join(5, () => random.mark())),
  'Han': random => random.string('han', 6),
  'Hangul': random => random.string('hangul', 6),
  'kana': random => random.join(6, () => random.character('kana') + (random.below(4) ? '' : '\u3099')),
  'emoji': random => random.string('emoji', 6),
  'supplementary characters': random => random.string('supplementary', 4),
  'punctuation and symbols': random => random.string('symbols', 8),
  'other scripts': random => random.string('scripts', 6),
  'contractions': random => random.join(3, () => random.contraction()),
  'long runs of common weights': random =>
    random.join(3, () => random.character('latin').repeat(random.below(120)) + random.character('bmp')),
  'mixed': random => random.join(6, () => random.ofAnyKind()),
}

/** Repeats the same strings for the same seed. */
export class RandomStrings {
  readonly #contractions: readonly string[]
  readonly #marks: readonly string[]
  #state: number

  constructor(seed: number) {
    this.#state = seed
    const table = decodeRootTable()
    const codePoints = Array.from({ length: 0x110000 }, (_, codePoint) => codePoint)
    this.#marks = codePoints.filter(codePoint => table.combiningClasses(codePoint) !== 0)
      .map(codePoint => String.fromCodePoint(codePoint))
    this.#contractions = codePoints.filter(codePoint => startsContraction(table.mapping(codePoint)))
      .flatMap(codePoint => continued(String.fromCodePoint(codePoint), table.contractionsFrom(codePoint)))
  }

  /** Returns an integer from 0 to `limit` - 1. */
  below(limit: number): number {
    this.#state = this.#state + 0x9e3779b9 | 0
    let mixed = Math.imul(this.#state ^ this.#state >>> 16, 0x21f0aaad)
    mixed = Math.imul(mixed ^ mixed >>> 15, 0x735a2d97)
    return ((mixed ^ mixed >>> 15) >>> 0) % limit
  }

  character(name: keyof typeof ranges): string {
    const [first, last] = this.#pick<readonly number[]>(ranges[name])
    return String.fromCodePoint(first! + this.below(last! - first! + 1))
  }

  string(name: keyof typeof ranges, lengthMax: number): string {
    return this.join(lengthMax, () => this.character(name))
  }

  /** Joins up to `countMax` parts. */
  join(countMax: number, part: () => string): string {
    return Array.from({ length: this.below(countMax + 1) }, part).join('')
  }

  mark(): string {
    return this.#pick(this.#marks)
  }

  /** A contraction; sometimes cut off, continued, or with marks between its characters. */
  contraction(): string {
    const characters = [...this.#pick(this.#contractions)]
    return characters.map(character => {
      switch (this.below(4)) {
        case 0: return character + this.mark()
        case 1: return character + this.mark() + this.mark()
        case 2: return this.below(3) > 0 ? character : this.#pick(this.#contractions)
        default: return character
      }
    }).join('')
  }

  /** A string of any kind but `mixed`. */
  ofAnyKind(): string {
    return this.#pick(Object.values(kinds).filter(kind => kind !== kinds['mixed']))(this)
  }

  /** A string that differs little from another one, or not at all. */
  variant(text: string): string {
    const characters = [...text]
    const at = this.below(characters.length + 1)
    switch (this.below(7)) {
      case 0: return text.normalize('NFC')
      case 1: return text.normalize('NFD')
      case 2: return text.toUpperCase()
      case 3: return characters.toSpliced(at, 1).join('')
      case 4: return characters.toSpliced(at, 0, this.mark()).join('')
      case 5: return characters.toSpliced(at, 1, this.character('bmp')).join('')
      default: return characters.toSpliced(at, 1, this.ofAnyKind()).join('')
    }
  }

  #pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!
  }
}

/** All contractions that continue a text. */
function continued(text: string, node: ContractionNode): string[] {
  return [...node.continuations].flatMap(codePoint => {
    const longer = text + String.fromCodePoint(codePoint)
    const next = node.next(codePoint)!
    return [...next.mapping === 0 ? [] : [longer], ...continued(longer, next)]
  })
}
