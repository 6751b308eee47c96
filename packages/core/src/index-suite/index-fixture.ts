import assert from 'node:assert/strict'
import { SortKeyEncoder } from '../collation/sort-key.ts'
import type {
  BuildIndexReply, GroupPlace, IndexDefinition, IndexHead, IndexRead, IndexReplica, IndexRow, ReadDocuments,
  ReducedGroup, ReduceIndexRequest, ScanIndexRequest,
} from '../contracts/index-replica.ts'
import { indexId, withoutHead } from '../contracts/index-replica.ts'
import {
  changeVerbs, newestPosition, type CallContext, type ChangeReplica, type ChangeRow, type ReplicaCheckpoint,
  ReplicaError,
} from '../contracts/shard-replica.ts'
import { deriveVerbs } from '../contracts/verb-table.ts'
import type { Indexer, MappedRow } from '../index-memory/indexer.ts'
import { MemoryShardReplica } from '../replica-memory/shard-replica-memory.ts'
import type { JsonObject } from '../json/json-text.ts'
import { queryIndexKind } from '../mango/query-index.ts'
import { queryRowMaker } from '../mango/query-row.ts'
import { revisionHash } from '../revisions/revision-hash.ts'

/** Indexes without content that read the given replica with the given functions, and the function that closes them. */
export interface OpenedIndexes {
  readonly indexes: IndexReplica
  close(): Promise<void>
}

/** @param documents the documents of the replica, for `find` */
export type MakeIndexes =
  (replica: ChangeReplica, indexer: Indexer, documents: ReadDocuments) => Promise<OpenedIndexes>

/** What a document of the suite contains: it emits a row with the value for each of the keys. */
export interface SuiteDocument { readonly keys: readonly string[]; readonly value: number; readonly fails?: boolean }

const queryKeys = new SortKeyEncoder('root')
const arrayKey = queryKeys.encode([]).slice(0, 1)

export const context: CallContext = { timeoutMs: 5000 }
/** Emits the keys of documents. */
export const byKeys: IndexDefinition = {
  kind: 'suite', map: 'keys', reduce: 'sum', options: { collation: 'raw', local_seq: false },
}
/** Emits the values of documents as keys. */
export const byValue: IndexDefinition = { ...byKeys, map: 'value' }
/** Emits the keys of documents. The values of rows are the bytes of their keys without the first one. */
export const byBytes: IndexDefinition = { ...byKeys, map: 'bytes', reduce: null }
export const everything: ScanIndexRequest = {
  index: indexId(byKeys), through: 0, ranges: [{}], descending: false,
}

/** A document replica that tests can replace, stop in the middle of a scan and let fail; indexes over it. */
export class IndexFixture {
  readonly #make: MakeIndexes
  #opened: OpenedIndexes | undefined
  #lives = 0
  #purges = 0
  replica = this.#newReplica()
  /** The ids of the documents that were mapped. */
  readonly mapped: string[] = []
  /** The error with which scans of changes fail. */
  failure: ReplicaError | undefined
  /** Number of pages that scans of changes may still return before they are held. */
  #pagesLeft = Infinity
  #release = Promise.withResolvers<void>()
  #held = Promise.withResolvers<void>()

  constructor(make: MakeIndexes) {
    this.#make = make
  }

  async setUp(): Promise<void> {
    this.replace()
    this.release()
    this.failure = undefined
    this.mapped.length = 0
    this.#opened = await this.#make(new WatchedChanges(this), this.#indexer(), {
      openDocument: (request, call) => this.replica.openDocument(request, call),
      scanDocuments: (request, call) => this.replica.scanDocuments(request, call),
    })
  }

  async tearDown(): Promise<void> {
    this.release()
    await this.#opened?.close()
  }

  get indexes(): IndexReplica {
    assert(this.#opened)
    return this.#opened.indexes
  }

  /** Replaces the replica by an empty one with another history. */
  replace(): void {
    this.replica = this.#newReplica()
  }

  /** Lets scans of changes return one held page and further `pages` pages, and then holds them. */
  hold(pages = 0): void {
    this.#release.resolve()
    this.#release = Promise.withResolvers()
    this.#held = Promise.withResolvers()
    this.#pagesLeft = pages
  }

  release(): void {
    this.#pagesLeft = Infinity
    this.#release.resolve()
  }

  /** Resolves when a scan is held. */
  get held(): Promise<void> { return this.#held.promise }

  /** Passes the pages of a scan on. The scan fails at its end when the replica was replaced meanwhile. */
  async* watch<Row>(scan: AsyncIterable<Row>): AsyncGenerator<Row> {
    const { replica } = this
    for await (const page of scan) {
      if (this.#pagesLeft-- <= 0) {
        this.#held.resolve()
        await this.#release.promise
      }
      if (this.failure !== undefined) throw this.failure
      yield page
    }
    if (this.replica !== replica) throw new ReplicaError('other_history', 'the replica was replaced')
  }

  /** Writes the next revision of a document; null deletes it. */
  async write(id: string, document: SuiteDocument | JsonObject | null): Promise<void> {
    const body = Buffer.from(JSON.stringify(document ?? {}))
    const deleted = document === null
    const snapshot = await this.replica.openDocument({ id, body: false, tree: false }, context)
    const winner = snapshot?.leaves[0]
    const parent = winner === undefined || winner.deleted ? null : winner.revision
    const edit = { id, parent, deleted, body, revisionHash: revisionHash({ deleted, parent, body }) }
    const reply = await this.replica.updateDocuments({ edits: [edit], revsLimit: 10 }, context)
    assert.deepEqual(reply.kind === 'decided' && reply.outcomes.map(({ kind }) => kind), ['updated'])
  }

  /** Stores a revision without a parent as another cluster would send it; a document that exists gets a conflict. */
  async store(id: string, hash: string, document: SuiteDocument | JsonObject): Promise<void> {
    const body = Buffer.from(JSON.stringify(document))
    const revision = { id, path: { start: 1, ids: [hash] }, deleted: false, body }
    await this.replica.storeRevisions({ revisions: [revision], revsLimit: 10, external: true }, context)
  }

  /** Purges all leaves of a document. */
  async purge(id: string): Promise<void> {
    const { leaves } = (await this.replica.openDocument({ id, body: false, tree: false }, context))!
    const paths = leaves.map(({ revision }) => ({ start: parseInt(revision), ids: [revision.split('-')[1]!] }))
    await this.replica.purgeDocuments({ purges: [{ uuid: `purge-${++this.#purges}`, id, paths }] }, context)
  }

  /** Returns the replica's history and newest sequence. */
  async newest(): Promise<ReplicaCheckpoint> {
    return newestPosition(this.replica, context)
  }

  /** Brings an index to the replica's newest sequence. */
  async build(definition = byKeys): Promise<BuildIndexReply> {
    const request = { definition, through: 'newest' as const, waitMs: 4000 }
    const reply = await this.indexes.buildIndex(request, context)
    assert(reply.position.sequence >= reply.through, 'the index was built in time')
    return reply
  }

  async scan(
    request: Partial<ScanIndexRequest> = {}, call = context,
  ): Promise<{ readonly head: IndexHead; readonly rows: readonly IndexRow[] }> {
    return collect(this.indexes.scanIndex({ ...everything, ...request }, call))
  }

  async reduce(
    request: Partial<IndexRead<GroupPlace>> & Pick<ReduceIndexRequest, 'groupLevel'>,
  ): Promise<readonly ReducedGroup[]> {
    return (await collect(this.indexes.reduceIndex({ ...everything, ...request } as ReduceIndexRequest, context))).rows
  }

  /** Returns the rows that the replica's documents have now, computed without an index, in the order of an index. */
  async expected(): Promise<readonly string[]> {
    const rows: { readonly text: string; readonly order: Buffer }[] = []
    for await (const page of this.replica.scanDocuments({ descending: false, body: true, leaves: false }, context)) {
      for (const { id, body } of page) {
        const { keys, value, fails } = documentFrom(body!)
        for (const [number, key] of fails ? [] : keys.entries()) {
          rows.push({ text: rowText({ key, id, number, value: encoded(value) }), order: orderBytes(key, id, number) })
        }
      }
    }
    return rows.sort((a, b) => Buffer.compare(a.order, b.order)).map(({ text }) => text)
  }

  #newReplica(): MemoryShardReplica {
    return new MemoryShardReplica({ history: `life-${++this.#lives}` })
  }

  #indexer(): Indexer {
    return {
      map: (definition, document): readonly MappedRow[] => {
        const { id, body } = document
        this.mapped.push(id)
        if (definition.kind === queryIndexKind) return queryRows(definition, document)
        const { map } = definition
        const { keys, value, fails } = documentFrom(body!)
        if (fails) throw new Error(`cannot map ${id}`)
        if (map === 'bytes') return keys.map(key => ({ key, value: Buffer.from(key.slice(1), 'latin1') }))
        return (map === 'keys' ? keys : [String(value)]).map(key => ({ key, value: encoded(value) }))
      },
      // The keys of query indexes are sort keys of arrays. Other keys are grouped at level 1 only: at a higher level, a
      // short key could be the beginning of a longer one.
      groupOf: (key, level) =>
        key.startsWith(arrayKey) ? queryKeys.groupKey(key, level) : key.slice(0, level),
      reduce: (_definition, rows) => folded(rows),
    }
  }
}

/** Reads the fixture's present replica. */
const WatchedChanges = deriveVerbs<typeof changeVerbs, IndexFixture>(changeVerbs, {
  call: verb => (fixture, request, call) => verb.invoke(fixture.replica, request, call),
  pages: verb => (fixture, request, call) => fixture.watch(verb.invoke(fixture.replica, request, call)),
})

/** The reduction of the suite. It shows which rows were reduced, and in which order. */
export function folded(rows: readonly Pick<MappedRow, 'key' | 'value'>[]): Uint8Array {
  const sum = rows.reduce((total, { value }) => total + Number(Buffer.from(value)), 0)
  return Buffer.from(JSON.stringify({ sum, keys: rows.map(({ key }) => key) }))
}

export function rowText({ key, id, number, value }: Pick<IndexRow, 'key' | 'id' | 'number' | 'value'>): string {
  return JSON.stringify([key, id, number, String(Buffer.from(value))])
}

/** Returns bytes whose order is that of an index, for keys and ids without the byte 0. */
function orderBytes(key: string, id: string, number: number): Buffer {
  const end = Buffer.from([0])
  return Buffer.concat([Buffer.from(key, 'latin1'), end, Buffer.from(id), end, Buffer.from([number])])
}

export async function assertFails(call: Promise<unknown>, code: ReplicaError['code']): Promise<void> {
  await assert.rejects(call, (error: unknown) => {
    assert(error instanceof ReplicaError, `ReplicaError expected, not ${String(error)}`)
    assert.equal(error.code, code)
    return true
  })
}

function queryRows(definition: IndexDefinition, { id, leaves, body, attachments }: ChangeRow): readonly MappedRow[] {
  const document = { id, revision: leaves[0]!.revision, body: body!, ...(attachments && { attachments }) }
  const row = queryRowMaker(definition)(document)
  return row === undefined ? [] : [row]
}

function documentFrom(body: Uint8Array): SuiteDocument {
  return JSON.parse(Buffer.from(body).toString()) as SuiteDocument
}

function encoded(value: number): Uint8Array {
  return Buffer.from(String(value))
}

async function collect<Row extends { readonly kind: string }>(
  answer: AsyncIterable<readonly (IndexHead | Row)[]>,
): Promise<{ readonly head: IndexHead; readonly rows: readonly Row[] }> {
  const heads: IndexHead[] = []
  const rows: Row[] = []
  for await (const page of withoutHead(answer, head => heads.push(head))) rows.push(...page)
  assert.equal(heads.length, 1, 'one head comes before the rows')
  return { head: heads[0]!, rows }
}
