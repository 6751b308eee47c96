import type {
  ImmediateAnswer, ImmediateIndexReads, ImmediateScan, IndexRead, IndexRow, ReducedGroup, ReduceIndexRequest,
  ReplicaCheckpoint, ScanIndexRequest,
} from '@sectional/core'
import type { IndexContent } from './index-content.ts'
import { indexHead } from './index-head.ts'
import type { StoredState } from './index-records.ts'
import type { IndexStore } from './index-store.ts'
import { RowTree } from './row-tree.ts'
import { beginRunScan, type RunScan } from './run-scan.ts'

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

  beginScan(request: ScanIndexRequest): ImmediateScan | undefined {
    const index = this.#settled(request)
    if (index === undefined) return undefined
    const { content, state } = index
    const { height, rowCount, version } = state
    if (rowCount === 0) return new AnsweredScan({ head: indexHead(content.state, 0), rows: [] })
    if (height === 0) return undefined
    try {
      const { store, ranges } = this.#parts.store
      const tree = new RowTree(store, content.keys, height, content.cache.ofVersion(version))
      const scan = beginRunScan({ tree, state: content.state, request, places: ranges })
      return scan && new ScanInMemory(content, scan)
    } catch (error) {
      return noteFailure(content, error)
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

/** A scan whose answer is known before it begins. */
class AnsweredScan implements ImmediateScan {
  readonly #answer: ImmediateAnswer<IndexRow>

  constructor(answer: ImmediateAnswer<IndexRow>) {
    this.#answer = answer
  }

  locate(): void {}
  touch(): void {}
  answer(): ImmediateAnswer<IndexRow> { return this.#answer }
}

/** A scan that has an answer if all of its rows are in memory. */
class ScanInMemory implements ImmediateScan {
  readonly #content: IndexContent
  readonly #scan: RunScan

  constructor(content: IndexContent, scan: RunScan) {
    this.#content = content
    this.#scan = scan
  }

  locate(): void { this.#scan.locate() }
  touch(): void { this.#scan.touch() }

  answer(): ImmediateAnswer<IndexRow> | undefined {
    try {
      return this.#scan.continue() === 'complete' ? this.#scan.answer : undefined
    } catch (error) {
      return noteFailure(this.#content, error)
    }
  }
}

/** Returns no answer. The call that follows meets the same error, and fails with it. */
function noteFailure(content: IndexContent, error: unknown): undefined {
  content.noteFailure(error)
  return undefined
}
