import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { Balancer } from '../../src/balancer.ts'
import { openQueriedPouch, type QueriedPouch } from '../../src/pouch-queries.ts'
import { eventually, TestCluster } from '../../src/test-cluster.ts'
import { administrator } from '../../src/test-node.ts'
import { HttpClient } from '../../src/http-client.ts'

const genres = ['drama', 'satire', 'scifi']
const documents = Array.from({ length: 60 }, (_, at) => ({
  _id: `film${String(at).padStart(2, '0')}`, genre: genres[at % 3]!, year: 1950 + at * 7 % 60, cast: { size: at % 5 },
  tags: [at % 2 === 0 ? 'even' : 'odd', `t${at % 4}`],
}))

/** Queries to which PouchDB gives the same answer from its own database as CouchDB. */
const queries: readonly object[] = [
  { selector: { genre: 'drama', year: { $gte: 1960, $lt: 1990 } }, sort: ['genre', 'year'] },
  { selector: { genre: { $eq: 'scifi' } }, sort: [{ genre: 'desc' }, { year: 'desc' }], limit: 7 },
  { selector: { year: { $gte: 1970 } }, sort: ['year'], skip: 3, limit: 9, fields: ['_id', 'year'] },
  { selector: { year: { $gt: 1950 }, tags: { $elemMatch: { $eq: 'odd' } } }, sort: ['year'], limit: 60 },
  { selector: { year: { $exists: true }, $or: [{ genre: 'drama' }, { 'cast.size': 4 }] }, sort: ['year'], limit: 60 },
  { selector: { _id: { $gt: 'film50' } }, fields: ['cast.size'] },
  { selector: { genre: { $in: ['drama', 'satire'] }, year: { $mod: [10, 3] } }, sort: ['genre', 'year'], limit: 60 },
  { selector: { year: { $gt: 0 }, tags: { $all: ['even', 't2'] } }, sort: ['year'], limit: 60 },
]

describe('pouchdb-find 9', function () {
  this.timeout(120_000)
  let cluster: TestCluster
  let balancer: Balancer
  let http: HttpClient
  let folder: string
  let local: QueriedPouch
  let remote: QueriedPouch

  before(async () => {
    cluster = await TestCluster.start({ nodes: 3 })
    balancer = await Balancer.open(cluster.nodes)
    http = new HttpClient(balancer.port, administrator)
    folder = mkdtempSync(join(tmpdir(), 'sectional-pouch-find-'))
    expect((await http.send('PUT', '/films')).status).to.equal(201)
    local = openQueriedPouch(join(folder, 'local'))
    remote = openQueriedPouch(`${balancer.url}/films`)
    for (const database of [local, remote]) {
      await database.bulkDocs(documents)
      for (const fields of [['genre', 'year'], ['year']]) await database.createIndex({ index: { fields } })
    }
    // Each request may go to another node, which learns of an index some milliseconds later.
    for (const { http: node } of cluster.nodes) {
      await eventually('the indexes to be known', 10_000, async () => {
        expect((await node.send('GET', '/films/_index')).body).to.include({ total_rows: 3 })
      })
    }
  })
  after(async function () {
    await local.close()
    rmSync(folder, { recursive: true })
    http.close()
    await balancer.close()
    await cluster.close(this.currentTest?.state === 'failed')
  })

  for (const query of queries) {
    it(`gets the same documents from three nodes as from its own database: ${JSON.stringify(query)}`, async () => {
      const [own, others] = await Promise.all([local.find(query), remote.find(query)])
      expect(others.docs.map(withoutRevision)).to.deep.equal(own.docs.map(withoutRevision))
      expect(others.docs).to.have.length.above(0)
    })
  }

  it('walks through all documents with bookmarks', async () => {
    const years: unknown[] = []
    for (let bookmark: string | undefined; ;) {
      const page = await remote.find({
        selector: { year: { $gt: 0 } }, sort: ['year'], limit: 7, ...(bookmark !== undefined && { bookmark }),
      })
      if (page.docs.length === 0) break
      years.push(...page.docs.map(({ year }) => year))
      bookmark = page.bookmark
    }
    expect(years).to.deep.equal(documents.map(({ year }) => year).sort((a, b) => a - b))
  })

  it('manages indexes, and explains which one a query uses', async () => {
    const definition = { index: { fields: ['cast.size'] }, ddoc: 'cast', name: 'size', type: 'json' }
    expect(await remote.createIndex(definition)).to.deep.equal({ result: 'created', id: '_design/cast', name: 'size' })
    const index = await eventually('the index to be known', 10_000, async () => {
      const explained = await remote.explain({ selector: { 'cast.size': 3 } })
      expect(explained.index.name).to.equal('size')
      return explained.index
    })
    expect((await remote.createIndex(definition)).result).to.equal('exists')
    expect((await remote.getIndexes()).indexes.map(({ name }) => name)).to.include('size')
    expect(await remote.deleteIndex(index)).to.deep.equal({ ok: true })
  })

  it('gets an error for a sort without an index', async () => {
    const refused = await remote.find({ selector: {}, sort: ['tags'] }).catch((error: unknown) => error)
    expect(refused).to.include({ status: 400, error: 'no_usable_index' })
  })
})

function withoutRevision({ _rev, ...document }: Readonly<Record<string, unknown>>): object {
  return document
}
