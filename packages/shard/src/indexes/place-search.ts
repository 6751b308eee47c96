/** Places that are looked for in many runs, in the forms that the comparisons need. */
import type { RowRange } from '@sectional/core'
import { compareUtf8 } from '@sectional/core'
import { placeRange } from './index-keys.ts'

/** From U+D800 on, the order of UTF-16 units is not that of UTF-8. */
const outOfOrder = /[\ud800-\uffff]/

/** A place with which others are compared. */
export class SoughtPlace {
  readonly text: string
  /** The text as UTF-8. */
  readonly bytes: Buffer
  /** Whether the order of units decides. It does for all others when one of two texts has only units below U+D800. */
  readonly #isPlain: boolean

  constructor(text: string) {
    this.text = text
    this.bytes = Buffer.from(text)
    this.#isPlain = !outOfOrder.test(text)
  }

  /** Returns whether a place is behind this one. */
  isBefore(place: string): boolean {
    return this.#isPlain ? place > this.text : compareUtf8(place, this.text) > 0
  }

  /** Returns whether this place is the given one or behind it. */
  isAtOrBehind(place: string): boolean {
    return !this.isBefore(place)
  }

  /** Returns whether a place is this one or behind it. */
  isAtOrBefore(place: string): boolean {
    return this.#isPlain ? place >= this.text : compareUtf8(place, this.text) >= 0
  }
}

/** Rows from `from` (inclusive) to `to` (exclusive). */
export interface SoughtRange {
  readonly from: SoughtPlace
  readonly to: SoughtPlace
  /** Whether `from` is not before `to`. */
  readonly isEmpty: boolean
}

/** Makes the places of a query's ranges once: all shards of a node read the same ranges. */
export class SoughtRanges {
  /** The ranges for which `of` was called last. */
  #last: readonly RowRange[] = []
  #lastPlaces: readonly SoughtRange[] = []

  of(ranges: readonly RowRange[]): readonly SoughtRange[] {
    if (ranges !== this.#last) {
      this.#lastPlaces = ranges.map(soughtRange)
      this.#last = ranges
    }
    return this.#lastPlaces
  }
}

function soughtRange(range: RowRange): SoughtRange {
  const { from, to } = placeRange(range)
  const places = { from: new SoughtPlace(from), to: new SoughtPlace(to) }
  return { ...places, isEmpty: places.from.bytes.compare(places.to.bytes) >= 0 }
}
