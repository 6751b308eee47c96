import { StorageError } from '@sectional/runtime'
import type { FilterBudget } from './id-filter.ts'
import { IdFilter } from './id-filter.ts'
import { ShardKeys } from '../records/key-layout.ts'
import type { ShardRecords } from './shard-records.ts'
import { pageEntries, scanEntries } from '../records/entry-scan.ts'

/** Number of ids that are added to the filter for each unsuccessful look-up. An id costs a quarter of a look-up. */
const idsReadForMiss = 4

/**
 * Tells for which ids the shard certainly has no document, so that they need not be looked up. LevelDB searches an
 * absent key in each table whose range contains it, and such searches make it compact these tables. They took a quarter
 * of the cost of a new document.
 *
 * All staged ids are added to the filter, even if the batch fails later. If the shard was empty at the start, the
 * filter is complete. Otherwise the existing ids are read page by page in the background, once there were enough
 * unsuccessful look-ups to justify the cost. Until all ids have been read, and when the node's budget is insufficient,
 * every document is looked up.
 */
export class KnownIds {
  readonly #records: ShardRecords
  readonly #filter: IdFilter
  /** The last id that was read; '': none yet; null: all existing ids have been read; undefined: before `start`. */
  #readTo: string | null | undefined
  /** The last id for which `lack` was true, because a decision looks up the same document several times. */
  #lastLacking: string | undefined
  #owed = 0
  #reading = false

  constructor(records: ShardRecords, budget: FilterBudget) {
    this.#records = records
    this.#filter = new IdFilter(budget)
  }

  /** Call this before the first look-up. */
  start(isEmpty: boolean): void {
    if (this.#readTo === undefined) this.#readTo = isEmpty ? null : ''
  }

  add(id: string): void {
    this.#lastLacking = undefined
    this.#filter.add(id)
  }

  /** Returns true only when no document of that id is stored or staged. */
  lack(id: string): boolean {
    if (id === this.#lastLacking) return true
    if (this.#readTo !== null || this.#filter.full || this.#filter.mayHave(id)) return false
    this.#lastLacking = id
    return true
  }

  /** Call this after an unsuccessful look-up. After enough of them a page of ids is read in the background. */
  missed(): void {
    if (this.#readTo === null || this.#filter.full) return
    this.#owed += idsReadForMiss
    if (this.#owed >= pageEntries && !this.#reading) void this.#readPage()
  }

  release(): void {
    this.#lastLacking = undefined
    this.#filter.release()
  }

  async #readPage(): Promise<void> {
    this.#reading = true
    this.#owed -= pageEntries
    try {
      const after = this.#readTo === '' ? undefined : { id: this.#readTo!, inclusive: false }
      let last: string | null = null
      const range = this.#records.keys.ids('i', after, undefined)
      for await (const page of scanEntries(this.#records.store, range, { values: false })) {
        for (const [key] of page) this.#filter.add(last = ShardKeys.text(key))
        break
      }
      this.#readTo = last
    } catch (error) {
      // The next unsuccessful look-ups try again. Reads and writes of documents report the failure of the disk.
      if (!(error instanceof StorageError)) throw error
    } finally {
      this.#reading = false
    }
  }
}
