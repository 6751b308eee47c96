/**
 * Summaries of rows: how many rows a range of places has, and their reduced value. A *run* is a range with at most
 * `runRowsMax` rows. The summaries of adjacent runs are the entries of a page of level 1, and those of adjacent pages
 * the entries of a page of the next level. One page, the root, covers all rows.
 */
import { sealBytes, sealRecord } from '@sectional/runtime'
import { ByteReader } from '../records/byte-reader.ts'
import { ByteWriter } from '../records/byte-writer.ts'
import { checkSeal } from '../records/damaged-record.ts'
import type { LinkedEntry } from './part-cache.ts'
import type { SoughtPlace } from './place-search.ts'
import { rowBytes, type StoredRow } from './row-reader.ts'
import { RunRows } from './run-rows.ts'

export interface Summary {
  /**
   * The least place of the range. The range ends where the next entry begins. The first entry of a page begins where
   * the page does, and the root at `firstPlace`. Every other place separates two rows that were adjacent when the range
   * was divided, and is as short as possible (`separatingPlace`), so that pages do not contain whole keys.
   */
  readonly place: string
  /** Above 0, except in the first entry of a page. */
  readonly count: number
  /** Empty when `count` is 0 and when the index has no reduce function. */
  readonly value: Uint8Array
}

/** A run or page that exceeds one of these limits is divided, unless it has only one row, or two entries. */
export const runRowsMax = 64
const pageEntriesMax = 64
export const partBytesMax = 64 * 1024
/** With fewer entries, a level could have as many pages as the one below, and there would never be one root. */
const pageEntriesMin = 2
/** The size of the parts: room for later rows, so that a new part is not divided at once. */
export const partItems = 48

const writer = new ByteWriter(sealBytes)
const noValue = new Uint8Array(0)

export function encodePage(entries: readonly Summary[]): Uint8Array {
  writer.integer(entries.length)
  for (const { place, count, value } of entries) {
    writer.text(place)
    writer.integer(count)
    writer.integer(value.length)
    writer.bytes(value)
  }
  return sealRecord(writer.finish())
}

/** The summary of a part that may be in memory. */
export interface PageEntry extends Summary, LinkedEntry {
  /** The number of rows of the entries before it in its page. */
  readonly before: number
}

/** Estimated bytes of memory that an entry takes besides its value and twice its place. */
const objectBytes = 250

/** The entries of a page, with what makes searches cheap: it is made by the first one. */
export class SummaryPage {
  readonly entries: readonly PageEntry[]
  /** The places of all entries but the first one, which never begins behind a place that is looked for in the page. */
  #places: RunRows | undefined

  constructor(entries: readonly PageEntry[]) {
    this.entries = entries
  }

  /** The approximate size in memory. */
  get bytes(): number {
    return this.entries.reduce((sum, { place, value }) => sum + 2 * place.length + value.length + objectBytes, 0)
  }

  /** Returns the index of the last entry that begins at or before a place. */
  indexOf(place: SoughtPlace): number {
    this.#places ??= new RunRows(this.entries.slice(1).map(entry => ({ place: entry.place, value: noValue })))
    return this.#places.countTo(place)
  }
}

export function decodePage(bytes: Uint8Array): SummaryPage {
  checkSeal(bytes, 'a page of summaries')
  const reader = new ByteReader(bytes, sealBytes)
  const entries = new Array<PageEntry>(reader.integer())
  let before = 0
  for (let i = 0; i < entries.length; i++) {
    const place = reader.text()
    const count = reader.integer()
    entries[i] = { place, count, before, value: reader.bytes(reader.integer()), link: undefined }
    before += count
  }
  return new SummaryPage(entries)
}

/** Divides the rows of a run that exceeds a limit. */
export function dividedRows(rows: readonly StoredRow[]): readonly (readonly StoredRow[])[] {
  return divided(rows, { min: 1, max: runRowsMax }, rowBytes)
}

/** Divides the entries of a page that exceeds a limit. */
export function dividedEntries(entries: readonly Summary[]): readonly (readonly Summary[])[] {
  return divided(entries, { min: pageEntriesMin, max: pageEntriesMax }, summaryBytes)
}

/**
 * Divides a list that exceeds a limit into parts of about equal length.
 *
 * @param limits the numbers of items that need not be divided, and that need not be divided because of their bytes
 * @returns the parts in order; the list itself when it exceeds no limit
 */
function divided<Item>(
  items: readonly Item[], { min, max }: { readonly min: number; readonly max: number },
  bytesOf: (item: Item) => number,
): readonly (readonly Item[])[] {
  const bytes = items.reduce((sum, item) => sum + bytesOf(item), 0)
  if (items.length <= min || items.length <= max && bytes <= partBytesMax) return [items]
  const count = items.length <= max ? items.length : Math.ceil(items.length / Math.ceil(items.length / partItems))
  const parts: Item[][] = []
  let partBytes = 0
  for (const item of items) {
    const last = parts.at(-1)
    const isFull = last === undefined || last.length >= count
      || last.length >= min && partBytes + bytesOf(item) > partBytesMax
    if (isFull) {
      parts.push([item])
      partBytes = 0
    } else last!.push(item)
    partBytes += bytesOf(item)
  }
  return parts
}

export function summaryBytes({ place, value }: Summary): number {
  return place.length + value.length
}

/** Returns the index of the last entry that begins at or before a place; 0 when there is none. */
export function entryAt(entries: readonly Summary[], isBehind: (place: string) => boolean): number {
  let low = 1
  let high = entries.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (isBehind(entries[middle]!.place)) high = middle
    else low = middle + 1
  }
  return low - 1
}
