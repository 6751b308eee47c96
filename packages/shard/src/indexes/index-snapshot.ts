import type { IndexFailure } from '@sectional/core'
import { indexFailuresMax } from '@sectional/core'
import type { StoreSnapshot } from '@sectional/runtime'
import type { IndexContent } from './index-content.ts'
import { IndexKeys } from './index-keys.ts'
import { decodeState, openRecord, type StoredState } from './index-records.ts'
import type { IndexStore } from './index-store.ts'
import type { PartCache } from './part-cache.ts'
import { RowList } from './row-list.ts'
import type { RowReader } from './row-reader.ts'
import { RowTree } from './row-tree.ts'

/** One state of an index, which builds and drops do not change. Close it soon. */
export class IndexSnapshot {
  readonly keys: IndexKeys
  readonly state: StoredState
  readonly source: StoreSnapshot

  readonly #cache: PartCache

  private constructor(keys: IndexKeys, state: StoredState, source: StoreSnapshot, cache: PartCache) {
    this.#cache = cache
    this.keys = keys
    this.state = state
    this.source = source
  }

  /** @throws StorageError, and DamagedRecordError when the state of the index is damaged or missing */
  static open({ store }: IndexStore, { keys, cache }: IndexContent): IndexSnapshot {
    const source = store.snapshot()
    try {
      const state = decodeState(source.getSync(keys.state()))
      return new IndexSnapshot(keys, state, source, cache.ofVersion(state.version))
    } catch (error) {
      void source.close()
      throw error
    }
  }

  /** @param check called from time to time in reads that take long; an error that it throws ends them */
  rows(check: () => void): RowReader {
    const { source, keys, state: { height } } = this
    return height === 0
      ? new RowList(source, keys, check)
      : new RowTree(source, keys, height, this.#cache)
  }

  /** Returns some of the documents on which the map function failed. */
  async failures(): Promise<readonly IndexFailure[]> {
    const iterator = this.source.iterate(this.keys.failures(), { limit: indexFailuresMax })
    try {
      const found: IndexFailure[] = []
      for (let page = await iterator.next(indexFailuresMax); page.length > 0;
        page = await iterator.next(indexFailuresMax)) {
        for (const [key, value] of page) {
          found.push({ id: IndexKeys.text(key), error: Buffer.from(openRecord(value, 'a failure')).toString() })
        }
      }
      return found
    } finally {
      await iterator.close()
    }
  }

  close(): Promise<void> {
    return this.source.close()
  }
}
