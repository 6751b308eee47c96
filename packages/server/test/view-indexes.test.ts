import { expect } from 'chai'
import type { OperationContext, ViewQuery } from '@sectional/cluster'
import type { IndexDefinition } from '@sectional/core'
import { SortKeyEncoder } from '@sectional/core'
import { documentStoreName, type Indexer } from '@sectional/shard'
import type { ViewFunctions } from '../src/node.ts'
import { MemoryCluster } from './memory-cluster.ts'

const encoder = new SortKeyEncoder()
const definition: IndexDefinition = { kind: 'test', map: 'number', reduce: 'sum', options: {} }
const everything: ViewQuery = {
  definition, ranges: [{}], descending: false, skip: 0, limit: null, update: true, timeoutMs: 60_000,
}
const numberOf = (bytes: Uint8Array): number => Number(Buffer.from(bytes).toString())
const sumOf = (values: readonly Uint8Array[]): Uint8Array =>
  Buffer.from(String(values.reduce((sum, value) => sum + numberOf(value), 0)))

/** Has a row for each document with a number: key and value are the number. */
class NumberIndexer implements Indexer {
  readonly version = '1'
  /** While set, map functions wait for it. */
  gate: Promise<void> | undefined

  async map(...[, rows]: Parameters<Indexer['map']>): ReturnType<Indexer['map']> {
    await this.gate
    return rows.map(({ body }) => {
      const { number } = JSON.parse(Buffer.from(body!).toString()) as { readonly number?: number }
      if (number === undefined) return { error: 'the document has no number' }
      return { rows: [{ key: encoder.encode(number), value: Buffer.from(String(number)) }] }
    })
  }

  groupOf(key: string): string { return key }
  async reduce(...[, lists]: Parameters<Indexer['reduce']>): Promise<readonly Uint8Array[]> {
    return lists.map(rows => sumOf(rows.map(({ value }) => value)))
  }
  async rereduce(...[, lists]: Parameters<Indexer['rereduce']>): Promise<readonly Uint8Array[]> {
    return lists.map(sumOf)
  }
  encodeGroup(...[, , , value]: Parameters<Indexer['encodeGroup']>): Uint8Array { return value }
}

class IndexedCluster extends MemoryCluster {
  readonly indexer: NumberIndexer
  readonly count: number

  constructor(count: number) {
    const indexer = new NumberIndexer()
    const views: ViewFunctions = {
      indexerOf: () => indexer,
      reduceAgain: () => async groups => groups.map(sumOf),
    }
    super(count, { views })
    this.indexer = indexer
    this.count = count
  }

  get numbers(): readonly number[] { return this.names.map((_, at) => at + 1) }

  async begin(): Promise<void> {
    for (const number of this.numbers) await this.start(number)
    await this.ready()
    await this.send(1, 'PUT', '/db?q=4')
  }

  async write(documents: readonly object[]): Promise<void> {
    const { status, body } = await this.send(1, 'POST', '/db/_bulk_docs', { docs: documents })
    expect([status, body.filter((row: { ok?: boolean }) => row.ok !== true)]).to.deep.equal([201, []])
  }

  /** Returns the values of all rows, as a node coordinates the query. */
  async rows(via: number): Promise<readonly number[]> {
    return this.finish(this.#rows(via))
  }

  async sum(via: number): Promise<number | undefined> {
    return this.finish(this.#sum(via))
  }

  async #rows(via: number): Promise<readonly number[]> {
    const answer = await this.#coordinator(via).scanView(this.#database(via), everything, context())
    const values: number[] = []
    try {
      for await (const page of answer.rows) values.push(...page.map(({ value }) => numberOf(value)))
    } finally {
      await answer.close()
    }
    return values
  }

  async #sum(via: number): Promise<number | undefined> {
    const query = { ...everything, groupLevel: 0 }
    const answer = await this.#coordinator(via).reduceView(this.#database(via), query, context())
    let sum
    try {
      for await (const [group] of answer.rows) sum = numberOf(group!.value)
    } finally {
      await answer.close()
    }
    return sum
  }

  #coordinator(via: number) { return this.node(via).coordinator }
  #database(via: number) { return this.node(via).control.state()!.databases.get('db')! }
}

function context(): OperationContext {
  return { requestId: 'test', signal: new AbortController().signal }
}

const documents = (from: number, to: number): object[] =>
  Array.from({ length: to - from }, (_, at) => ({ _id: `d${from + at}`, number: from + at }))
const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, at) => from + at)

for (const count of [1, 3]) {
  describe(`indexes of ${count} ${count === 1 ? 'node' : 'nodes'}`, () => {
    let cluster: IndexedCluster

    beforeEach(async () => {
      cluster = new IndexedCluster(count)
      await cluster.begin()
    })
    afterEach(async () => {
      await cluster.close()
      for (const number of cluster.numbers) expect(cluster.disk(number).openStores).to.deep.equal([])
      expect(cluster.clock.pendingTimers).to.equal(0)
    })

    it('answer scans and reductions of every node, with the newest documents', async () => {
      await cluster.write([...documents(0, 40), { _id: 'without' }])
      for (const via of cluster.numbers) expect(await cluster.rows(via)).to.deep.equal(range(0, 40))
      await cluster.write(documents(40, 50))
      for (const via of cluster.numbers) expect(await cluster.rows(via)).to.deep.equal(range(0, 50))
      for (const via of cluster.numbers) expect(await cluster.sum(via)).to.equal(1225)
    })

    it('are there after a restart of all nodes, and without purged documents', async () => {
      await cluster.write(documents(0, 30))
      expect(await cluster.rows(1)).to.deep.equal(range(0, 30))
      for (const number of cluster.numbers) await cluster.stop(number)
      for (const number of cluster.numbers) await cluster.start(number)
      await cluster.ready()
      expect(await cluster.rows(count)).to.deep.equal(range(0, 30))
      const { body: { _rev: revision } } = await cluster.send(1, 'GET', '/db/d7')
      expect((await cluster.send(1, 'POST', '/db/_purge', { d7: [revision] })).status).to.equal(201)
      for (const via of cluster.numbers) {
        expect(await cluster.rows(via)).to.deep.equal(range(0, 30).filter(number => number !== 7))
      }
    })

    it('are removed with their database', async () => {
      await cluster.write(documents(0, 10))
      await cluster.rows(1)
      const stored = (): number => cluster.numbers.reduce((sum, number) =>
        sum + cluster.disk(number).entries('indexes').filter(([key]) => /d\d/.test(key)).length, 0)
      expect(stored()).to.be.greaterThan(0)
      await cluster.send(1, 'DELETE', '/db')
      await cluster.until('no index is left', () => stored() === 0)
    })
  })
}

describe('indexes of three nodes whose replicas fail', () => {
  let cluster: IndexedCluster

  beforeEach(async () => {
    cluster = new IndexedCluster(3)
    await cluster.begin()
    await cluster.write(documents(0, 30))
  })
  afterEach(() => cluster.close())

  it('are built again when a damaged replica was rebuilt', async () => {
    for (const via of cluster.numbers) expect(await cluster.rows(via)).to.deep.equal(range(0, 30))
    const histories = async (): Promise<string> =>
      JSON.stringify((await cluster.send(2, 'GET', '/_node/_local/_replicas/db')).body.replicas
        .map(({ history }: { history: string }) => history))
    const before = await histories()
    const disk = cluster.disk(2)
    const [key, value] = disk.entries(documentStoreName)
      .find(([, bytes]) => Buffer.from(bytes).includes('{"number":11}'))!
    disk.damage(documentStoreName, key, value.map((byte, at) => at === value.length - 1 ? byte ^ 1 : byte))
    await cluster.send(2, 'GET', '/db/d11')
    await cluster.until('the replica is rebuilt', async () => await histories() !== before)
    await cluster.write(documents(30, 35))
    for (const via of cluster.numbers) expect(await cluster.rows(via)).to.deep.equal(range(0, 35))
  })

  it('are complete when a node has crashed, and lost what it had not synced', async () => {
    expect(await cluster.rows(2)).to.deep.equal(range(0, 30))
    cluster.crash(2)
    await cluster.write(documents(30, 40))
    expect(await cluster.rows(1)).to.deep.equal(range(0, 40))
    await cluster.start(2)
    await cluster.ready()
    await cluster.write(documents(40, 50))
    for (const via of cluster.numbers) expect(await cluster.rows(via)).to.deep.equal(range(0, 50))
  })

  it('are listed among the active tasks while they are built', async () => {
    const gate = Promise.withResolvers<void>()
    cluster.indexer.gate = gate.promise
    const reading = cluster.rows(1)
    await cluster.until('a build runs', async () => {
      const { body } = await cluster.send(1, 'GET', '/_active_tasks')
      return body.some((task: Record<string, unknown>) => task['type'] === 'indexer')
    })
    const [task] = (await cluster.send(1, 'GET', '/_active_tasks')).body
    expect(task).to.include({ type: 'indexer', progress: 0, changes_done: 0 })
    expect(task.database).to.match(/^shards\/[0-9a-f]+-[0-9a-f]+\/db$/)
    gate.resolve()
    expect(await reading).to.deep.equal(range(0, 30))
    expect((await cluster.send(1, 'GET', '/_active_tasks')).body).to.deep.equal([])
  })
})
