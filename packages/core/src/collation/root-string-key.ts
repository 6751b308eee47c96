import { marksMax, matchContraction } from './contraction-match.ts'
import { keyTooLong, sortKeyBytesMax } from './key-bytes.ts'
import type { KeyBytes } from './key-bytes.ts'
import { mappingCount, mappingStart, startsContraction } from './mapping.ts'
import type { Mapping } from './mapping.ts'
import { decodeRootTable } from './root-table.ts'
import type { RootTable } from './root-table.ts'
import { commonWeight, WeightLevel } from './weight-level.ts'

const levelSeparator = 1
/** Lead byte of U+FFFE, which separates fields. */
const mergeSeparatorLead = 2
/** Bytes that end a run of primary weights with one lead byte, before a lower and a higher lead byte. */
const runEndLow = 3
const runEndHigh = 0xff
/** Runs of common weights that one byte denotes, as in ICU. */
const secondaryRunMax = 0x21
const tertiaryRunMax = 0x61
/** Added to tertiary weights above the common one, which makes room for the bytes that denote runs. */
const tertiaryShift = 0xc000
const commonLower = commonWeight << 16 | commonWeight
/** Code points for which memory is kept. */
const keptCodePointsMax = 1 << 14
const initialCodePoints = 64

const hangulBase = 0xac00
const hangulCount = 11_172
const leadingJamo = 0x1100
const vowelJamo = 0x1161
const trailingJamo = 0x11a7
const vowelCount = 21
const trailingCount = 28

/** Whether all contractions that start with a character have its primary weight first: those of `l` have. */
function startsWithItself(codePoint: number): boolean {
  return codePoint === 0x4c || codePoint === 0x6c
}

/** The table, which is decoded at its first use. It never changes, so all users of a process share it. */
class SharedTable {
  #table: RootTable | undefined

  get(): RootTable {
    return this.#table ??= decodeRootTable()
  }
}

const sharedTable = new SharedTable()

/**
 * Writes the bytes that ICU's `ucol_getSortKey` returns for a string, for the root collation with its default
 * attributes: primary weights, 01, secondary weights, 01, tertiary weights, 00. The 00 occurs at the end only.
 */
export class RootStringKeys {
  readonly #secondaries = new WeightLevel(secondaryRunMax)
  readonly #tertiaries = new WeightLevel(tertiaryRunMax)
  #codePoints = new Int32Array(initialCodePoints)
  /** The lead byte of the run of primary weights that is being written; 0 outside of such runs. */
  #runLead = 0

  /** @throws ApiError `bad_request` beyond `sortKeyBytesMax` */
  write(text: string, key: KeyBytes): void {
    this.#writePrimaries(this.#readCodePoints(text), key)
    key.push(levelSeparator)
    this.#secondaries.finish(key)
    key.push(levelSeparator)
    this.#tertiaries.finish(key)
    key.push(0)
  }

  /**
   * Writes the bytes with which the keys of all strings begin that start with this text: the primary weights of the
   * text. The keys of some other strings begin with them, too.
   *
   * @throws ApiError `bad_request` beyond `sortKeyBytesMax`
   */
  writePrefix(text: string, key: KeyBytes): void {
    this.#writePrimaries(this.#closedLength(this.#readCodePoints(text)), key)
  }

  /** Returns the number of code points before the first contraction that a longer text could continue. */
  #closedLength(length: number): number {
    const table = sharedTable.get()
    for (let start = 0; start < length; start++) {
      const codePoint = this.#codePoints[start]!
      if (startsWithItself(codePoint) || !startsContraction(table.mapping(codePoint))) continue
      let at = start + 1
      let node = table.contractionsFrom(codePoint).next(this.#codePoints[at]!)
      while (at < length && node !== undefined) node = node.next(this.#codePoints[++at]!)
      // A mark behind other marks may continue a contraction.
      const limit = Math.min(length, at + marksMax)
      while (at < limit && table.combiningClasses(this.#codePoints[at]!) !== 0) at++
      if (at === limit) return start
    }
    return length
  }

  /** Writes the primary weights of the first code points, and collects the other weights. */
  #writePrimaries(length: number, key: KeyBytes): void {
    const table = sharedTable.get()
    this.#secondaries.clear()
    this.#tertiaries.clear()
    this.#runLead = 0
    for (let at = 0; at < length;) {
      const codePoint = this.#codePoints[at]!
      const mapping = table.mapping(codePoint)
      if (mapping === 0) {
        this.#writeComputed(table, codePoint, key)
        at++
      } else if (startsContraction(mapping)) {
        const match = matchContraction(table, this.#codePoints, at, length)
        this.#writeMapping(table, match.mapping, key)
        at = match.end
      } else {
        this.#writeMapping(table, mapping, key)
        at++
      }
    }
  }

  /** Decodes UTF-16, in which a lone surrogate is a code point, and returns the number of code points. */
  #readCodePoints(text: string): number {
    if (text.length > sortKeyBytesMax) throw keyTooLong()
    const isTooLarge = this.#codePoints.length > keptCodePointsMax && text.length <= initialCodePoints
    if (isTooLarge) this.#codePoints = new Int32Array(initialCodePoints)
    else if (text.length > this.#codePoints.length) this.#codePoints = new Int32Array(2 * text.length)
    let length = 0
    for (let at = 0; at < text.length; at++) {
      let code = text.charCodeAt(at)
      if ((code & 0xfc00) === 0xd800) {
        code = text.codePointAt(at)!
        if (code > 0xffff) at++
      }
      this.#codePoints[length++] = code
    }
    return length
  }

  #writeComputed(table: RootTable, codePoint: number, key: KeyBytes): void {
    const syllable = codePoint - hangulBase
    if (syllable < 0 || syllable >= hangulCount) {
      this.#writeElement(table, table.computedPrimary(codePoint), commonLower, key)
      return
    }
    const trailing = syllable % trailingCount
    const leadingAndVowel = Math.floor(syllable / trailingCount)
    this.#writeMapping(table, table.mapping(leadingJamo + Math.floor(leadingAndVowel / vowelCount)), key)
    this.#writeMapping(table, table.mapping(vowelJamo + leadingAndVowel % vowelCount), key)
    if (trailing > 0) this.#writeMapping(table, table.mapping(trailingJamo + trailing), key)
  }

  #writeMapping(table: RootTable, mapping: Mapping, key: KeyBytes): void {
    const start = mappingStart(mapping)
    const end = start + mappingCount(mapping)
    for (let i = start; i < end; i++) this.#writeElement(table, table.primaries[i]!, table.lowers[i]!, key)
  }

  #writeElement(table: RootTable, primary: number, lower: number, key: KeyBytes): void {
    if (primary !== 0) this.#writePrimary(table, primary, key)
    if (lower === commonLower) {
      this.#secondaries.addCommon()
      this.#tertiaries.addCommon()
      return
    }
    const secondary = lower >>> 16
    if (secondary === commonWeight) this.#secondaries.addCommon()
    else if (secondary !== 0) this.#secondaries.add(secondary)
    const tertiary = lower & 0xffff
    if (tertiary === commonWeight) this.#tertiaries.addCommon()
    else this.#tertiaries.add(tertiary > commonWeight ? tertiary + tertiaryShift : tertiary)
  }

  #writePrimary(table: RootTable, primary: number, key: KeyBytes): void {
    const lead = primary >>> 24
    if (lead !== this.#runLead) {
      if (this.#runLead !== 0) {
        if (lead > this.#runLead) key.push(runEndHigh)
        else if (lead > mergeSeparatorLead) key.push(runEndLow)
      }
      key.push(lead)
      this.#runLead = table.compressible[lead] === 1 ? lead : 0
    }
    const second = primary >>> 16 & 0xff
    if (second === 0) return
    key.push(second)
    const third = primary >>> 8 & 0xff
    if (third === 0) return
    key.push(third)
    const fourth = primary & 0xff
    if (fourth !== 0) key.push(fourth)
  }
}
