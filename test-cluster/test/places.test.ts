import { expect } from 'chai'
import { PlaceLoader } from '../src/place-loader.ts'
import { places } from '../src/places.ts'
import { TestCluster, eventually } from '../src/test-cluster.ts'

const database = 'places'
const pageSize = 5000
const minutesMax = 6

describe('loading a real data set (135,000 places) through three nodes', function () {
  this.timeout(minutesMax * 60_000)
  let cluster: TestCluster
  beforeEach(async () => {
    cluster = await TestCluster.start({ nodes: 3 })
    expect((await cluster.node(1).http.send('PUT', `/${database}`)).status).to.equal(201)
  })
  afterEach(async function () { await cluster.close(this.currentTest?.state === 'failed') })

  it('loses nothing when a node is killed, and another one cut off, during the load', async () => {
    const documents = places()
    const loader = new PlaceLoader(cluster, database)
    const loaded = loader.load(documents)
    await written(loader, documents.length / 6)
    await cluster.node(2).crash()
    await written(loader, documents.length / 3)
    cluster.node(2).start()
    await cluster.ready()
    cluster.partition([1], [2, 3])
    await written(loader, loader.acknowledged.size + documents.length / 6)
    cluster.heal()
    await loaded
    await cluster.ready()
    await verify(loader, documents.length)
  })

  function written(loader: PlaceLoader, count: number): Promise<void> {
    return eventually(`${count} documents to be written`, minutesMax * 60_000, async () => {
      if (loader.acknowledged.size < count) throw new Error(`${loader.acknowledged.size} are`)
    })
  }

  async function verify(loader: PlaceLoader, count: number): Promise<void> {
    expect(loader.acknowledged.size + loader.foundWritten.size).to.be.at.least(count)
    const replicas = await cluster.converge(database)
    expect(replicas.reduce((sum, replica) => sum + replica.document_count, 0)).to.equal(3 * count)
    for (const node of cluster.nodes) {
      await expectReadable(node.number, [...loader.acknowledged])
      await expectNoConflicts(node.number, count)
    }
  }

  /** Reads every acknowledged revision from all three replicas (r=3). */
  async function expectReadable(number: number, acknowledged: readonly (readonly [string, string])[]): Promise<void> {
    for (let from = 0; from < acknowledged.length; from += pageSize) {
      const page = acknowledged.slice(from, from + pageSize)
      const { status, body } = await cluster.node(number).http.send('POST', `/${database}/_bulk_get?r=3`, {
        json: { docs: page.map(([id, rev]) => ({ id, rev })) }, timeoutMs: 60_000,
      })
      expect(status).to.equal(200)
      const found = new Map<string, string>(
        body.results.map((result: { id: string, docs: { ok?: { _rev: string }, error?: unknown }[] }) =>
          [result.id, result.docs[0]?.ok?._rev]),
      )
      for (const [id, rev] of page) {
        if (found.get(id) !== rev) expect.fail(`${id} through node${number}: wanted ${rev}, got ${found.get(id)}`)
      }
    }
  }

  async function expectNoConflicts(number: number, count: number): Promise<void> {
    let seen = 0
    let startkey: string | undefined
    for (;;) {
      const start = startkey === undefined ? '' : `&startkey=${encodeURIComponent(JSON.stringify(startkey))}`
      const query = `limit=${pageSize + 1}&include_docs=true&conflicts=true${start}`
      const { body } = await cluster.node(number).http.send('GET', `/${database}/_all_docs?${query}`, {
        timeoutMs: 60_000,
      })
      const rows = body.rows as { id: string, doc: { _conflicts?: string[] } }[]
      for (const row of rows.slice(0, pageSize)) {
        seen++
        if (row.doc._conflicts) expect.fail(`${row.id} through node${number} has conflicts ${row.doc._conflicts}`)
      }
      startkey = rows[pageSize]?.id
      if (startkey === undefined) break
    }
    expect(seen).to.equal(count)
  }
})
