/** View queries of several nodes over indexes in memory, with the faults of `ReplicaWorld`. */
import { changeVerbs, deriveVerbs, indexId, indexVerbs, ReplicaError, shardKey, SortKeyEncoder } from '@sectional/core'
import type {
  ChangeReplica, IndexDefinition, IndexReplica, IndexRow, RowBound, RowRange, ShardId,
} from '@sectional/core'
import { MemoryIndexReplica } from '@sectional/core/index-replica-memory'
import type { MemoryIndexReplicaOptions } from '@sectional/core/index-replica-memory'
import type { MemoryShardReplica } from '@sectional/core/shard-replica-memory'
import type { CoordinatorNode } from '../../src/coordinator-node.ts'
import { defaultCoordinatorOptions } from '../../src/contracts/coordinator-options.ts'
import { newPages } from '../../src/shard-calls/coordinator-scope.ts'
import { ReplicaAccess } from '../../src/replicas/replica-access.ts'
import { ReplicaHealth } from '../../src/replicas/replica-health.ts'
import { BackgroundWork } from '../../src/shard-calls/background-work.ts'
import { createViewMemory, defaultViewOptions } from '../../src/views/view-scope.ts'
import type { IndexDirectory, ViewOptions, ViewScope } from '../../src/views/view-scope.ts'
import type { ViewQuery } from '../../src/contracts/view-query.ts'
import { edit, faultyCall, faultyPages, noted, ReplicaWorld, request } from '../replica-world.ts'
import type { TestLink, WorldOptions } from '../replica-world.ts'

type Indexer = MemoryIndexReplicaOptions['indexer']

/** What a document of the tests contains: it emits a row with the value for each of the keys. */
export interface TestDocument { readonly id: string; readonly keys: readonly unknown[]; readonly value: number }

/** A row as the indexer of the tests encodes it. */
export interface TestRow { readonly key: unknown; readonly id: string; readonly value: number }

export const encoder = new SortKeyEncoder()
export const definition: IndexDefinition = { kind: 'test', map: 'keys', reduce: 'sum', options: {} }
export const everything: ViewQuery = {
  definition, ranges: [{}], descending: false, skip: 0, limit: null, update: true, timeoutMs: 10_000,
}

export class IndexWorld extends ReplicaWorld {
  readonly #indexes = new WeakMap<MemoryShardReplica, MemoryIndexReplica>()
  readonly #coordinators = new Map<string, CoordinatorNode>()
  readonly #gates = new Map<string, PromiseWithResolvers<void>>()
  readonly #viewOptions: ViewOptions
  readonly #coordinatorOptions: WorldOptions['coordinator']
  /** Abort it to stop the lazy builds of the scopes of `viewScope`. */
  readonly stopping = new AbortController()
  /** Number of rows in each page that a replica sends. */
  pageRows = 3
  /** Number of pages that replicas have sent. */
  pagesSent = 0
  /** Number of scans that were opened and not closed. */
  openScans = 0

  constructor(options: WorldOptions & { readonly views?: Partial<ViewOptions> } = {}) {
    super(options)
    this.#viewOptions = { ...defaultViewOptions, ...options.views }
    this.#coordinatorOptions = options.coordinator
  }

  /** Returns the one coordinator of a node, because queries depend on the writes that it has acknowledged. */
  override coordinator(node: string): CoordinatorNode {
    let coordinator = this.#coordinators.get(node)
    if (coordinator === undefined) {
      coordinator = super.coordinator(node, { views: {
        indexes: this.indexDirectory(node), options: this.#viewOptions, reduceAgain: notReduced, tryView: notReduced,
      } })
      this.#coordinators.set(node, coordinator)
    }
    return coordinator
  }

  /** Returns the dependencies of queries that this node coordinates. */
  viewScope(node: string): ViewScope {
    const { clock } = this
    const options = { ...defaultCoordinatorOptions, ...this.#coordinatorOptions }
    const readHealth = new ReplicaHealth(clock, options.suspectMs)
    const decisionHealth = new ReplicaHealth(clock, options.suspectMs)
    const health = { reads: readHealth, decisions: decisionHealth }
    return {
      runtime: this.runtime(node), options, readHealth, decisionHealth, viewOptions: this.#viewOptions,
      access: new ReplicaAccess(node, this.directory(node), health, () => this.state().databases),
      pages: newPages(options), background: new BackgroundWork(), unconfirmed: this.coordinator(node).unconfirmed,
      ...createViewMemory(this.stopping.signal),
      indexes: this.indexDirectory(node),
    }
  }

  /** Returns the way from a node to the indexes of all replicas. */
  indexDirectory(from: string): IndexDirectory {
    return { indexes: (node, shard) => new FaultyIndexes({ world: this, from, node, shard }) }
  }

  /** The functions of definitions. */
  protected get indexer(): Indexer {
    return testIndexer
  }

  /** Writes documents on all replicas of their shards. */
  async write(documents: readonly TestDocument[], via = this.nodes[0]!, w = this.nodes.length): Promise<void> {
    const coordinator = this.coordinator(via)
    const found = await coordinator.openDocuments(this.db, documents.map(({ id }) => id), { body: false }, request())
    const edits = documents.map(({ id, ...body }, index) => edit(id, found[index]?.leaves[0]?.revision ?? null, body))
    await this.during(coordinator.updateDocuments(this.db, edits, { w }, request()))
  }

  /** Lets builds on a node wait. */
  holdBuilds(node: string): void {
    this.#gates.set(node, Promise.withResolvers())
  }

  releaseBuilds(node: string): void {
    this.#gates.get(node)?.resolve()
    this.#gates.delete(node)
  }

  /** Returns the indexes of a replica, without faults. */
  indexesOn(node: string, shard: ShardId): MemoryIndexReplica {
    const index = this.db.shards.findIndex(({ range }) => shardKey({ ...shard, range }) === shardKey(shard))
    const replica = this.store(node, index)
    if (replica === undefined) throw new ReplicaError('not_hosted', 'no such replica')
    let indexes = this.#indexes.get(replica)
    if (indexes === undefined) {
      const changes = new HeldChanges({ replica, gate: () => this.#gates.get(node)?.promise })
      indexes = new MemoryIndexReplica({
        replica: changes, documents: replica, indexer: this.indexer, clock: this.clock,
      })
      this.#indexes.set(replica, indexes)
    }
    return indexes
  }

  /** Removes the indexes of a node's replicas. */
  forgetIndexes(node: string): void {
    this.db.shards.forEach((_, index) => { this.#indexes.delete(this.store(node, index)) })
  }

  /** Returns the sequence of the index of each shard on a node; undefined where the node has none. */
  async positionsOn(node: string): Promise<readonly (number | undefined)[]> {
    return Promise.all(this.db.shards.map(async ({ range }) => {
      const indexes = this.indexesOn(node, { incarnation: this.db.incarnation, range })
      return indexes.indexInfo(indexId(definition), { timeoutMs: 1000 })
        .then(({ position }) => position.sequence, () => undefined)
    }))
  }

  /** Splits pages and counts them. */
  async* inPages<Row>(pages: AsyncIterable<readonly Row[]>): AsyncGenerator<readonly Row[]> {
    this.openScans++
    try {
      for await (const page of pages) {
        for (let at = 0; at < page.length; at += this.pageRows) {
          this.pagesSent++
          yield page.slice(at, at + this.pageRows)
        }
      }
    } finally {
      this.openScans--
    }
  }
}

const testIndexer: Indexer = {
  map: (_definition, { id, body }) => {
    const { keys, value } = JSON.parse(String(Buffer.from(body!))) as TestDocument
    return keys.map(key => ({ key: encoder.encode(key), value: encoded({ key, id, value }) }))
  },
  groupOf: (key, level) => encoder.groupKey(key, level),
  reduce: (_definition, rows) =>
    encoded({ ...decoded(rows[0]!.value), id: '', value: sumOf(rows.map(({ value }) => value)) }),
}

function notReduced(): never {
  throw new Error('the tests reduce by themselves')
}

function encoded(row: TestRow): Uint8Array {
  return Buffer.from(JSON.stringify(row))
}

function decoded(value: Uint8Array): TestRow {
  return JSON.parse(String(Buffer.from(value))) as TestRow
}

/** Returns the sum of the values of rows or groups. */
export function sumOf(values: readonly Uint8Array[]): number {
  return values.reduce((sum, value) => sum + decoded(value).value, 0)
}

/** Returns the rows that documents emit, in the order of a view. */
export function rowsOf(documents: readonly TestDocument[]): readonly TestRow[] {
  return documents
    .flatMap(({ id, keys, value }) => keys.map(key => ({ row: { key, id, value }, sort: encoder.encode(key) })))
    .toSorted((a, b) => a.sort < b.sort ? -1 : a.sort > b.sort ? 1 : a.row.id < b.row.id ? -1 : 1)
    .map(({ row }) => row)
}

/** Reads all pages. */
export async function collect<Row>(pages: AsyncIterable<readonly Row[]>): Promise<Row[]> {
  const all: Row[] = []
  for await (const page of pages) all.push(...page)
  return all
}

/** Reads all rows, decoded. */
export async function testRows(pages: AsyncIterable<readonly Pick<IndexRow, 'value'>[]>): Promise<readonly TestRow[]> {
  return (await collect(pages)).map(({ value }) => decoded(value))
}

/** Returns the range from one key to another one, both inclusive. */
export function between(lower: unknown, upper: unknown): RowRange {
  const bound = (key: unknown): RowBound => ({ key: encoder.encode(key), inclusive: true })
  return { lower: bound(lower), upper: bound(upper) }
}

/** The indexes of a replica as one node reaches them. */
interface SeenIndexes extends TestLink { readonly world: IndexWorld; readonly shard: ShardId }

const FaultyIndexes: new (seen: SeenIndexes) => IndexReplica = deriveVerbs<typeof indexVerbs, SeenIndexes>(indexVerbs, {
  call: verb => (seen, body, context) => noted(seen, verb.name, () => faultyCall(seen, verb.name,
    async () => verb.invoke(seen.world.indexesOn(seen.node, seen.shard), body, context), context)),
  pages: verb => (seen, body, context) => noted(seen, verb.name, () => faultyPages(seen, verb.name, async function* () {
    const pages = verb.invoke(seen.world.indexesOn(seen.node, seen.shard), body, context)
    yield* seen.world.inPages(pages as AsyncIterable<readonly unknown[]>)
  }, context)),
})

interface Held { readonly replica: ChangeReplica; readonly gate: () => Promise<void> | undefined }

/** Lets scans of changes wait until the gate is open. */
const HeldChanges: new (held: Held) => ChangeReplica = deriveVerbs<typeof changeVerbs, Held>(changeVerbs, {
  call: verb => (held, body, context) => verb.invoke(held.replica, body, context),
  pages: verb => async function* (held, body, context) {
    await held.gate()
    yield* verb.invoke(held.replica, body, context)
  },
})
