/** Indexes of one replica on a disk that is damaged, full or lost, behind a host that can be started anew. */
import { expect } from 'chai'
import { indexId, ReplicaError } from '@sectional/core'
import type { IndexDefinition, IndexHead, IndexReplica, IndexRow, ReducedGroup } from '@sectional/core'
import { MemoryShardReplica } from '@sectional/core/shard-replica-memory'
import { MemoryMachine, PrometheusMetrics, RealClock, SeededRandom, Turns } from '@sectional/runtime'
import type { Storage } from '@sectional/runtime'
import { IndexHost } from '../../src/indexes/index-host.ts'
import type { IndexOptions } from '../../src/indexes/index-options.ts'
import type { Indexer } from '../../src/indexes/indexer.ts'
import { addDigest, digestText, documentDigest, emptyDigest } from '../../src/indexes/rows-digest.ts'
import { collect, context, edit, shardA, silentLog } from '../shard-world.ts'

const definition: IndexDefinition = { kind: 'test', map: 'x', reduce: 'count', options: {} }
const index = indexId(definition)
export const everything = { index, through: 'newest', ranges: [{}], descending: false } as const
/** Gives two rows for each document. */
export const indexer: Indexer = {
  versionOf: () => '1',
  map: async (_definition, documents) => documents.map(({ id, body }) => {
    const { value } = JSON.parse(Buffer.from(body!).toString()) as { readonly value: string }
    return { rows: ['a', 'b'].map(first => ({ key: `${first}${value}`, value: Buffer.from(`${id} ${value}`) })) }
  }),
  groupOf: (key, level) => key.slice(0, level),
  reduce: async (_definition, lists) => lists.map(rows => Buffer.from(String(rows.length))),
  rereduce: async (_definition, lists) =>
    lists.map(counts => Buffer.from(String(counts.reduce((sum, count) => sum + Number(Buffer.from(count)), 0)))),
  encodeGroup: (_definition, _row, _level, value) => value,
}

/** The documents are never lost. */
export class DamageWorld {
  readonly replica = new MemoryShardReplica({ history: 'one' })
  readonly values = new Map<string, string>()
  metrics = new PrometheusMetrics()
  readonly #revisions = new Map<string, string>()
  #host: IndexHost | undefined

  get host(): IndexHost { return this.#host! }

  start(storage: Storage, runIndexer = indexer, options: Partial<IndexOptions> = {}): void {
    const clock = new RealClock()
    this.metrics = new PrometheusMetrics()
    this.#host = new IndexHost({
      storage, clock, turns: new Turns(clock), machine: new MemoryMachine(clock), random: new SeededRandom(1),
      metrics: this.metrics, log: silentLog,
      indexerOf: () => runIndexer, histories: () => new Set(['one']), options,
    })
    this.#host.start()
  }

  async write(from: number, to: number, value: (number: number) => string): Promise<void> {
    const edits = Array.from({ length: to - from }, (_, at) => {
      const id = `d${from + at}`
      this.values.set(id, value(from + at))
      return edit(id, this.#revisions.get(id) ?? null, { value: this.values.get(id) })
    })
    const reply = await this.replica.updateDocuments({ edits, revsLimit: 10 }, context)
    if (reply.kind !== 'decided') throw new Error(reply.kind)
    for (const [at, outcome] of reply.outcomes.entries()) {
      if (outcome.kind !== 'updated') throw new Error(outcome.kind)
      this.#revisions.set(edits[at]!.id, `${outcome.path.start}-${outcome.path.ids[0]!}`)
    }
  }

  /** Writes the documents of a number, each of which was changed once. Another world gives them equal sequences. */
  async fill(documents: number): Promise<void> {
    for (let from = 0; from < documents; from += 200) {
      await this.write(from, from + 200, number => `x${number * 7919 % 1000}`)
      await this.write(from, from + 50, number => `y${number % 100}`)
    }
  }

  async indexes(): Promise<IndexReplica> {
    const { replica } = this
    return this.host.indexesOf({
      shard: shardA, history: 'one', replica, documents: replica, newest: () => undefined, isServed: () => true,
    }, true)
  }

  async build(): Promise<void> {
    await (await this.indexes()).buildIndex({ definition, through: 'newest', waitMs: 5000 }, context)
  }

  /** Reads all rows and the number of them as a coordinator does, which tries again after a failure. */
  async query(): Promise<{ readonly rows: readonly string[]; readonly count: number }> {
    for (let attempt = 1; ; attempt++) {
      try {
        const indexes = await this.indexes()
        const rows = (await collect(indexes.scanIndex(everything, context)))
          .filter((row): row is IndexRow => row.kind === 'row')
        const groups = (await collect(indexes.reduceIndex({ ...everything, groupLevel: 1 }, context)))
          .filter((group): group is ReducedGroup => group.kind === 'group')
        const count = groups.reduce((sum, { value }) => sum + Number(Buffer.from(value)), 0)
        return { rows: rows.map(({ key, value }) => `${key}=${Buffer.from(value).toString()}`), count }
      } catch (error) {
        if (!(error instanceof ReplicaError) || attempt > 5) throw error
        await this.build().catch((failure: unknown) => {
          if (!(failure instanceof ReplicaError)) throw failure
        })
      }
    }
  }

  /** Compares what an index that may be behind contains in rows, counters and reductions. */
  async checkState(): Promise<void> {
    const indexes = await this.indexes()
    const request = { ...everything, through: 0 }
    try {
      const [head, ...rows] = await collect(indexes.scanIndex(request, context)) as [IndexHead, ...IndexRow[]]
      expect(head.rowCount).to.equal(rows.length)
      const [, all] = await collect(indexes.reduceIndex({ ...request, groupLevel: 0 }, context))
      expect(all === undefined ? 0 : Number(Buffer.from((all as ReducedGroup).value))).to.equal(rows.length)
      const byId = Map.groupBy(rows, ({ id }) => id)
      const digest = [...byId].reduce((sum, [id, found]) =>
        addDigest(sum, documentDigest(id, found.toSorted((a, b) => a.number - b.number))), emptyDigest)
      expect(head.version).to.equal(digestText(digest))
    } catch (error) {
      expect(error).to.include({ code: 'not_hosted' })
    }
  }

  expected(): readonly string[] {
    return [...this.values].flatMap(([id, value]) => ['a', 'b'].map(first => `${first}${value}=${id} ${value}`)).sort()
  }

  async check(): Promise<void> {
    const { rows, count } = await this.query()
    expect(rows.toSorted()).to.deep.equal(this.expected())
    expect(count).to.equal(rows.length)
  }

  async damaged(what: 'index' | 'store'): Promise<number> {
    const samples = await this.metrics.samples()
    return samples.find(({ name, labels }) => name === 'sectional_index_damaged_total' && labels['what'] === what)
      ?.value ?? 0
  }
}
