import { expect } from 'chai'
import type { OperationContext, ViewQuery } from '@sectional/cluster'
import { decodeReduced, decodeViewGroup, decodeViewRow, indexId, type IndexDefinition } from '@sectional/core'
import { MemoryLog, MemoryMachine, MemorySandbox, RealClock, Turns } from '@sectional/runtime'
import { documentStoreName, type Indexer } from '@sectional/shard'
import { javascriptViews, type ViewFunctions } from '../src/hosting/javascript-views.ts'
import { MemoryCluster } from './memory-cluster.ts'

const definition: IndexDefinition = {
  kind: 'javascript', map: 'function (doc) { emit(doc.number, doc.number) }', reduce: '_sum', options: {},
}
const everything: ViewQuery = {
  definition, ranges: [{}], descending: false, skip: 0, limit: null, update: true, timeoutMs: 60_000,
}
const customReduce = 'function (keys, values, rereduce) { return values.reduce((a, b) => a + b, 0) }'

/** Nodes with the functions of production, which run in this process. */
class IndexedCluster extends MemoryCluster {
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

  /** Returns the reduction of all rows as JSON text. */
  async sum(via: number, reduce: string): Promise<string> {
    return this.finish(this.#sum(via, reduce))
  }

  async #rows(via: number): Promise<readonly number[]> {
    const answer = await this.#coordinator(via).scanView(this.#database(via), everything, context())
    const values: number[] = []
    try {
      for await (const page of answer.rows) values.push(...page.map(({ value }) => Number(decodeViewRow(value).value)))
    } finally {
      await answer.close()
    }
    return values
  }

  async #sum(via: number, reduce: string): Promise<string> {
    const query = { ...everything, definition: { ...definition, reduce }, groupLevel: 0 }
    const answer = await this.#coordinator(via).reduceView(this.#database(via), query, context())
    const sums: (string | undefined)[] = []
    try {
      for await (const page of answer.rows) sums.push(...page.map(({ value }) => sumIn(value)))
    } finally {
      await answer.close()
    }
    return sums.join()
  }

  #coordinator(via: number) { return this.node(via).coordinator }
  #database(via: number) { return this.node(via).control.state()!.databases.get('db')! }
}

function sumIn(group: Uint8Array): string | undefined {
  const reduced = decodeReduced(decodeViewGroup(group).state)
  return 'json' in reduced ? reduced.json : undefined
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
      await cluster.write(documents(0, 40))
      for (const via of cluster.numbers) expect(await cluster.rows(via)).to.deep.equal(range(0, 40))
      await cluster.write(documents(40, 50))
      for (const via of cluster.numbers) expect(await cluster.rows(via)).to.deep.equal(range(0, 50))
      for (const via of cluster.numbers) {
        expect([await cluster.sum(via, '_sum'), await cluster.sum(via, customReduce)]).to.deep.equal(['1225', '1225'])
      }
    })

    it('take the limit for results of reduce functions from the configuration', async () => {
      const long = (text: string): string => `function () { return "${text}".repeat(6000) }`
      await cluster.write(documents(0, 10))
      expect(await cluster.sum(1, long('a'))).to.equal('')
      for (const number of cluster.numbers) {
        const option = '/_node/_local/_config/query_server_config/reduce_limit'
        expect((await cluster.send(number, 'PUT', option, 'false')).status).to.equal(200)
      }
      expect((await cluster.sum(1, long('b'))).length).to.equal(6002)
    })

    it('answer the error that a map function demands, as long as the document is there', async () => {
      await cluster.send(1, 'PUT', '/db/_design/d', { views: {
        strict: { map: 'function (doc) { if (doc.bad) throw ["fatal", "bad_document", "it is: bad"]; emit(doc._id) }' },
        other: { map: 'function (doc) { emit(doc._id, 1) }' },
      } })
      await cluster.write([...documents(0, 10), { _id: 'bad', bad: true }])
      const view = (via: number, name: string) => cluster.send(via, 'GET', `/db/_design/d/_view/${name}`)
      for (const via of cluster.numbers) {
        const { status, body } = await view(via, 'strict')
        expect([status, body]).to.deep.equal([500, { error: 'bad_document', reason: 'it is: bad' }])
        expect((await view(via, 'other')).body.rows).to.have.length(11)
      }
      const { body: { _rev: revision } } = await cluster.send(1, 'GET', '/db/bad')
      expect((await cluster.send(1, 'DELETE', `/db/bad?rev=${revision}`)).status).to.equal(200)
      for (const via of cluster.numbers) expect((await view(via, 'strict')).body.rows).to.have.length(10)
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
})

describe('an index that is being built', () => {
  it('is listed among the active tasks', async () => {
    const gate = Promise.withResolvers<void>()
    const cluster = new IndexedCluster(1, { views: gatedViews(gate.promise) })
    await cluster.begin()
    await cluster.write(documents(0, 30))
    const reading = cluster.rows(1)
    await cluster.until('a build runs', async () => (await cluster.send(1, 'GET', '/_active_tasks')).body.length > 0)
    const [task] = (await cluster.send(1, 'GET', '/_active_tasks')).body
    expect(task).to.include({ type: 'indexer', index: indexId(definition), progress: 0, changes_done: 0 })
    expect(task.indexer_pid).to.equal(task.pid)
    expect(task.database).to.match(/^shards\/[0-9a-f]+-[0-9a-f]+\/db$/)
    gate.resolve()
    expect(await reading).to.deep.equal(range(0, 30))
    expect((await cluster.send(1, 'GET', '/_active_tasks')).body).to.deep.equal([])
    await cluster.close()
  })
})

/** The functions of production, whose map functions wait for the gate. */
function gatedViews(gate: Promise<void>): ViewFunctions {
  const clock = new RealClock()
  const machine = new MemoryMachine(clock)
  const views = javascriptViews({
    sandbox: new MemorySandbox(), turns: new Turns(clock), clock, machine, log: new MemoryLog(),
  })
  const indexerOf = (incarnation: string): Indexer => {
    const indexer = views.indexerOf(incarnation)
    return {
      versionOf: definition => indexer.versionOf(definition),
      map: async (...documents) => { await gate; return indexer.map(...documents) },
      groupOf: (...group) => indexer.groupOf(...group),
      reduce: (...lists) => indexer.reduce(...lists),
      rereduce: (...lists) => indexer.rereduce(...lists),
      encodeGroup: (...group) => indexer.encodeGroup(...group),
    }
  }
  return { ...views, indexerOf }
}
