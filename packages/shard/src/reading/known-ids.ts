import { StorageError } from '@sectional/runtime'
import type { FilterBudget } from './id-filter.ts'
import { IdFilter } from './id-filter.ts'
import { ShardKeys } from '../records/key-layout.ts'
import type { ShardRecords } from './shard-records.ts'
import { pageEntries, scanEntries } from '../records/entry-scan.ts'

/** Ids that are read into the filter for each look-up in vain: reading one is a quarter of the work. */
const idsReadForMiss = 4

/**
 * Which ids the shard surely has no document of. LevelDB looks for an absent key in every table whose range holds
 * it, and takes the search for a reason to compact them: that was a quarter of what a new document cost.
 *
 * Everything that is staged is added, whether it lands or not. What was there before is known of an empty shard;
 * of others it is read page by page as look-ups in vain show that it would pay, and until all of it is read, and
 * when the node's budget does not suffice, nothing is known and documents are looked up as ever.
 */
export class KnownIds {
  readonly #records: ShardRecords
  readonly #filter: IdFilter
  /** The last id that was read, '' before the first; null: all are known. */
  #readTo: string | null | undefined
  /** A decision asks several times for one document. */
  #lastLacking: string | undefined
  #owed = 0
  #reading = false

  constructor(records: ShardRecords, budget: FilterBudget) {
    this.#records = records
    this.#filter = new IdFilter(budget)
  }

  /** To be called before the first look-up. */
  start(isEmpty: boolean): void {
    if (this.#readTo === undefined) this.#readTo = isEmpty ? null : ''
  }

  add(id: string): void {
    this.#lastLacking = undefined
    this.#filter.add(id)
  }

  /** True only when there is no document of that id, neither stored nor staged. */
  lack(id: string): boolean {
    if (id === this.#lastLacking) return true
    if (this.#readTo !== null || this.#filter.full || this.#filter.mayHave(id)) return false
    this.#lastLacking = id
    return true
  }

  /** A look-up in vain: after enough of them a page of ids is read in the background. */
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
      for await (const page of scanEntries(this.#records.store, this.#records.keys.ids('i', after, undefined), { values: false })) {
        for (const [key] of page) this.#filter.add(last = ShardKeys.text(key))
        break
      }
      this.#readTo = last
    } catch (error) {
      // The next look-ups in vain try again, and whoever reads or writes documents hears of the disk.
      if (!(error instanceof StorageError)) throw error
    } finally {
      this.#reading = false
    }
  }
}
