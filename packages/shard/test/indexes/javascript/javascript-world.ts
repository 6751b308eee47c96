import {
  decodeReduced, decodeViewGroup, decodeViewRow, indexId, type IndexDefinition, type IndexInfo, type ReducedGroup,
  type RowRange,
} from '@sectional/core'
import { MemoryShardReplica } from '@sectional/core/shard-replica-memory'
import { MemorySandbox, MemoryStorage, RealClock, type Sandbox, SeededRandom, Turns } from '@sectional/runtime'
import { BuildQueue } from '../../../src/indexes/build-queue.ts'
import { IndexStore } from '../../../src/indexes/index-store.ts'
import type { JavaScriptParts, MapParts } from '../../../src/indexes/javascript/javascript-functions.ts'
import { JavaScriptIndexer } from '../../../src/indexes/javascript/javascript-indexer.ts'
import { viewReduceAgain } from '../../../src/indexes/javascript/reduce-again.ts'
import { ShardIndexes } from '../../../src/indexes/shard-indexes.ts'
import { collect, context, edit, silentLog } from '../../shard-world.ts'

export function viewOf(
  map: string, reduce: string | null = null, options: IndexDefinition['options'] = {},
): IndexDefinition {
  return { kind: 'javascript', map, reduce, options }
}

/** What a client receives for a group: `[key, value]`, or `[key, failure]` with the failure as an object. */
export type ShownGroup = readonly [key: unknown, value: unknown]

/** The indexes of one replica in memory, with the functions in a sandbox. */
export class JavaScriptWorld {
  readonly replica = new MemoryShardReplica({ history: 'one' })
  readonly indexes: ShardIndexes
  readonly #parts: MapParts
  readonly #store: IndexStore

  private constructor(parts: MapParts, store: IndexStore) {
    this.#parts = parts
    this.#store = store
    const { clock } = parts
    this.indexes = new ShardIndexes({
      owner: 'shard', database: 'db',
      store, replica: this.replica, indexer: new JavaScriptIndexer(parts), queue: new BuildQueue(clock),
      clock, turns: parts.turns,
    })
  }

  static async open(
    sandbox: Sandbox = new MemorySandbox(),
    limits: Pick<JavaScriptParts, 'reduceLimit' | 'onReduceOverflow' | 'onReduceFailure'> = {},
  ): Promise<JavaScriptWorld> {
    const clock = new RealClock()
    const store = await IndexStore.open({
      storage: new MemoryStorage(), log: silentLog, random: new SeededRandom(1), clock,
    })
    const turns = new Turns(clock)
    return new JavaScriptWorld({ sandbox, database: 'incarnation', turns, clock, ...limits }, store)
  }

  /** Writes new documents by their ids. */
  async write(documents: Readonly<Record<string, unknown>>): Promise<void> {
    const edits = Object.entries(documents).map(([id, value]) => edit(id, null, value))
    await this.replica.updateDocuments({ edits, revsLimit: 10 }, context)
  }

  async remove(id: string): Promise<void> {
    const found = await this.replica.openDocument({ id, body: false, tree: false }, context)
    const edits = [edit(id, found!.leaves[0]!.revision, {}, true)]
    await this.replica.updateDocuments({ edits, revsLimit: 10 }, context)
  }

  async build(definition: IndexDefinition): Promise<void> {
    // Functions that do not end take some seconds, and longer on a busy machine.
    await this.indexes.buildIndex(
      { definition, through: 'newest', waitMs: 60_000 }, { ...context, timeoutMs: 60_000 },
    )
  }

  /** Builds the index and returns `[id, key, value]` of its rows. */
  async rows(definition: IndexDefinition): Promise<readonly (readonly [string, unknown, unknown])[]> {
    await this.build(definition)
    const read = { index: indexId(definition), through: 0, ranges: [{}], descending: false }
    const found = await collect(this.indexes.scanIndex(read, context))
    return found.filter(row => row.kind === 'row').map(row => {
      const { key, value } = decodeViewRow(row.value)
      return [row.id, JSON.parse(key), JSON.parse(value)]
    })
  }

  /** Builds the index and returns the groups of a range. */
  async groups(
    definition: IndexDefinition, groupLevel: number | 'exact' = 0, range: RowRange = {},
  ): Promise<readonly ShownGroup[]> {
    await this.build(definition)
    const read = { index: indexId(definition), through: 0, ranges: [range], descending: false, groupLevel }
    const found = await collect(this.indexes.reduceIndex(read, context))
    return this.again(definition, found.filter((row): row is ReducedGroup => row.kind === 'group')
      .map(({ value }) => [value]))
  }

  /** Reduces groups of several shards as a coordinator does. */
  async again(
    definition: IndexDefinition, groups: readonly (readonly Uint8Array[])[],
  ): Promise<readonly ShownGroup[]> {
    const reduced = await viewReduceAgain(this.#parts, definition)(groups, new AbortController().signal)
    return reduced.map(group => {
      const { key, state } = decodeViewGroup(group)
      const result = decodeReduced(state)
      const value: unknown = result.failure === undefined ? JSON.parse(result.json) : result.failure
      return [key === null ? null : JSON.parse(key), value]
    })
  }

  info(definition: IndexDefinition): Promise<IndexInfo> {
    return this.indexes.indexInfo(indexId(definition), context)
  }

  async close(): Promise<void> {
    await this.indexes.close()
    await this.#store.close()
  }
}
