import type {
  ImmediateAnswer, ImmediateIndexReads, IndexRead, IndexRow, ReducedGroup, ReduceIndexRequest, ReplicaCheckpoint,
  ScanIndexRequest,
} from '@sectional/core'
import type { IndexContent } from './index-content.ts'
import { indexHead } from './index-head.ts'
import type { StoredState } from './index-records.ts'
import type { IndexStore } from './index-store.ts'
import { RowTree } from './row-tree.ts'
import { scanInMemory } from './run-scan.ts'

export interface ImmediateReadsParts {
  readonly store: IndexStore
  /** Returns the replica's newest position; undefined when the replica cannot be read now. */
  readonly newest: () => ReplicaCheckpoint | undefined
  /** Returns the content of the index with that id. */
  readonly contentOf: (index: string) => IndexContent | undefined
}

interface SettledIndex { readonly content: IndexContent; readonly state: StoredState }

/**
 * Reads indexes of one replica from memory. It needs no snapshot, because nothing can be written while it runs: it does
 * not read an index of which a batch is being written.
 */
export class ImmediateReads implements ImmediateIndexReads {
  readonly #parts: ImmediateReadsParts

  constructor(parts: ImmediateReadsParts) {
    this.#parts = parts
  }

  scanIndex(request: ScanIndexRequest): ImmediateAnswer<IndexRow> | undefined {
    const index = this.#settled(request)
    if (index === undefined) return undefined
    const { content, state } = index
    const { height, rowCount, version } = state
    if (rowCount === 0) return { head: indexHead(content.state, 0), rows: [] }
    if (height === 0) return undefined
    try {
      const { store, ranges } = this.#parts.store
      const tree = new RowTree(store, content.keys, height, content.cache.ofVersion(version))
      return scanInMemory({ tree, state: content.state, request, places: ranges })
    } catch (error) {
      // The call that follows meets the same error, and returns it.
      content.noteFailure(error)
      return undefined
    }
  }

  reduceIndex(request: ReduceIndexRequest): ImmediateAnswer<ReducedGroup> | undefined {
    const index = this.#settled(request)
    const rows = index && this.#parts.store.reductions.get(index.state.version, request)
    return rows && { head: indexHead(index!.content.state, 0), rows }
  }

  /** Returns an index that belongs to the replica's history and has reached the required sequence. */
  #settled({ index, through }: Pick<IndexRead<never>, 'index' | 'through'>): SettledIndex | undefined {
    const now = this.#parts.newest()
    const content = this.#parts.contentOf(index)
    const state = content?.settled
    if (now === undefined || content === undefined || state === undefined) return undefined
    const sequence = through === 'newest' ? now.sequence : Math.min(through, now.sequence)
    return state.history === now.history && state.sequence >= sequence ? { content, state } : undefined
  }
}
