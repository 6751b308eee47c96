import { decodeViewRow, indexId, queryIndexDefinition } from '@sectional/core'
import type { FindRequest, FindRow, IndexDefinition, IndexInfo, QueryIndex } from '@sectional/core'
import { MemoryShardReplica } from '@sectional/core/shard-replica-memory'
import { type Machine, MemoryMachine, MemoryStorage, RealClock, SeededRandom, Turns } from '@sectional/runtime'
import { BuildQueue } from '../../../src/indexes/build-queue.ts'
import { IndexStore } from '../../../src/indexes/index-store.ts'
import { indexersByKind } from '../../../src/indexes/indexers-by-kind.ts'
import { QueryIndexer } from '../../../src/indexes/query/query-indexer.ts'
import { ShardIndexes } from '../../../src/indexes/shard-indexes.ts'
import { collect, context, edit, silentLog } from '../../shard-world.ts'

type TestMachine = Pick<Machine, 'testInTime'>

export function indexOn(
  fields: readonly string[], partialFilter?: NonNullable<QueryIndex['partialFilter']>, partitioned = false,
): IndexDefinition {
  return queryIndexDefinition({ fields, partitioned, ...(partialFilter && { partialFilter }) })
}

/** The query indexes of one replica in memory. */
export class QueryWorld {
  readonly replica = new MemoryShardReplica({ history: 'one' })
  indexes: ShardIndexes
  readonly #store: IndexStore
  readonly #machine: TestMachine

  private constructor(store: IndexStore, machine: TestMachine) {
    this.#store = store
    this.#machine = machine
    this.indexes = this.#open()
  }

  #open(): ShardIndexes {
    const clock = new RealClock()
    const turns = new Turns(clock)
    const machine = this.#machine
    return new ShardIndexes({
      owner: 'shard', database: 'db',
      store: this.#store, replica: this.replica, queue: new BuildQueue(clock), clock, turns,
      indexer: indexersByKind({ query: new QueryIndexer({ turns, clock, machine }) }),
      find: { documents: this.replica, machine },
    })
  }

  /** Opens the indexes in the store as the next process does. */
  async reopen(): Promise<void> {
    await this.indexes.close()
    this.indexes = this.#open()
  }

  /** @param machine tests patterns that may take long */
  static async open(machine: TestMachine = new MemoryMachine(new RealClock())): Promise<QueryWorld> {
    const store = await IndexStore.open({
      storage: new MemoryStorage(), log: silentLog, random: new SeededRandom(1), clock: new RealClock(),
    })
    return new QueryWorld(store, machine)
  }

  /** Writes new documents by their ids. */
  async write(documents: Readonly<Record<string, unknown>>): Promise<void> {
    const edits = Object.entries(documents).map(([id, value]) => edit(id, null, value))
    await this.replica.updateDocuments({ edits, revsLimit: 10 }, context)
  }

  /** Writes or deletes (null) a document that exists. */
  async change(id: string, value: unknown): Promise<void> {
    const { leaves: [winner] } = (await this.replica.openDocument({ id, body: false, tree: false }, context))!
    const edits = [edit(id, winner!.revision, value ?? {}, value === null)]
    await this.replica.updateDocuments({ edits, revsLimit: 10 }, context)
  }

  async build(definition: IndexDefinition): Promise<void> {
    await this.indexes.buildIndex({ definition, through: 'newest', waitMs: 9000 }, context)
  }

  /** Builds the index and returns `id key` of its rows, with the key as JSON. */
  async rows(definition: IndexDefinition): Promise<readonly string[]> {
    await this.build(definition)
    const read = { index: indexId(definition), through: 0, ranges: [{}], descending: false }
    const found = await collect(this.indexes.scanIndex(read, context))
    return found.filter(row => row.kind === 'row').map(({ id, value }) => `${id} ${decodeViewRow(value).key}`)
  }

  async find(request: Partial<FindRequest>): Promise<readonly FindRow[]> {
    const everything: FindRequest =
      { selector: '{}', source: { kind: 'documents' }, descending: false, documents: 'winner' }
    return collect(this.indexes.find({ ...everything, ...request }, context))
  }

  info(definition: IndexDefinition): Promise<IndexInfo> {
    return this.indexes.indexInfo(indexId(definition), context)
  }

  async close(): Promise<void> {
    await this.indexes.close()
    await this.#store.close()
  }
}
