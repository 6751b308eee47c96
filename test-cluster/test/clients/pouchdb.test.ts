import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'chai'
import { Balancer } from '../../src/balancer.ts'
import { contentsOf, difference, leavesOf, remoteDatabase } from '../../src/database-contents.ts'
import { HttpClient, type Answer } from '../../src/http-client.ts'
import { localDatabase, openPouch, type Pouch, type PouchDocument, type PouchSync } from '../../src/pouch.ts'
import { seededBytes } from '../../src/seeded-bytes.ts'
import { TestCluster, eventually } from '../../src/test-cluster.ts'
import { administrator } from '../../src/test-node.ts'

const database = 'synced'
const documentsEach = 1200
const documentsOfBoth = 200
const batchSize = 200
const roundsMin = 30
const editsEachRound = 8
const syncMsMax = 120_000
/** Maximum milliseconds to wait for the end of a cancelled sync, which may never come if a response never ends. */
const cancelMsMax = 5000
const retryMsFirst = 100
const retryMsMax = 1000

/**
 * PouchDB 9 can leave out documents when a response is cut off. A replication whose feed fails drops the batches that
 * it has read ahead, and another replication begins at the checkpoint. But the failed one still finishes its current
 * batch, continues to read after the dropped batches, and moves the checkpoint there (replicate.js: `finishBatch` after
 * `abortReplication`). In addition, node-fetch 2 waits forever for the rest of a response whose length was announced.
 * Therefore the balancer leaves a node out before the test ends it, or a sync from the beginning follows.
 */
describe('pouchdb 9', function () {
  this.timeout(300_000)
  let cluster: TestCluster
  let balancer: Balancer
  let http: HttpClient
  let folder: string
  let pouch: Pouch
  let sync: PouchSync | undefined

  beforeEach(async () => {
    cluster = await TestCluster.start({ nodes: 3 })
    balancer = await Balancer.open(cluster.nodes)
    http = new HttpClient(balancer.port, administrator)
    folder = mkdtempSync(join(tmpdir(), 'sectional-pouch-'))
    pouch = openPouch(join(folder, 'local'))
    expect((await http.send('PUT', `/${database}`)).status).to.equal(201)
  })
  afterEach(async function () {
    // Without this, the sync would continue forever after a failure.
    sync?.cancel()
    await Promise.race([sync, pause(cancelMsMax)])
    await pouch.close()
    rmSync(folder, { recursive: true })
    http.close()
    await balancer.close()
    await cluster.close(this.currentTest?.state === 'failed')
  })

  it('syncs in both directions while a node is killed and started again, and both sides end equal', async () => {
    await fillBoth()
    const problems: unknown[] = []
    sync = startSync()
    sync.on('error', error => problems.push(error)).on('denied', error => problems.push(error))
    let round = 0
    await editWhile(() => pulled(documentsEach / 3), () => round++)
    balancer.takeOut(cluster.node(2))
    await editWhile(async () => balancer.isDrained(cluster.node(2)), () => round++)
    await cluster.node(2).crash()
    await editWhile(() => pulled(documentsEach * 2 / 3), () => round++)
    cluster.node(2).start()
    await cluster.ready()
    await editWhile(async () => round >= roundsMin, () => round++)

    await eventually('both sides to have the same revisions', syncMsMax, async () => {
      const unequal = difference(await leavesOf(localDatabase(pouch)), await leavesOf(remoteDatabase(http, database)))
      if (unequal !== null) throw new Error(unequal)
    })
    expect(problems).to.deep.equal([])
    sync.cancel()
    await sync
    await cluster.converge(database)
    await expectEqual()
  })

  it('receives in a sync from the beginning what a killed node had sent only in part', async () => {
    await fillBoth()
    sync = startSync()
    let round = 0
    await editWhile(() => pulled(documentsEach / 3), () => round++)
    await editWhile(async () => balancer.isAnswering(cluster.node(2)), () => round++)
    await cluster.node(2).crash()
    await editWhile(async () => round >= roundsMin / 2, () => round++)
    cluster.node(2).start()
    await cluster.ready()
    await editWhile(async () => round >= roundsMin, () => round++)
    sync.cancel()

    await pouch.sync(`${balancer.url}/${database}`, { checkpoint: false })
    await cluster.converge(database)
    await expectEqual()
  })

  function startSync(): PouchSync {
    return pouch.sync(`${balancer.url}/${database}`, {
      live: true,
      retry: true,
      back_off_function: (delayMs: number) => Math.min(Math.max(delayMs * 2, retryMsFirst), retryMsMax),
    })
  }

  /** Before the first sync: writes documents on each side, and some documents on both sides. */
  async function fillBoth(): Promise<void> {
    const own = (side: string) =>
      Array.from({ length: documentsEach }, (_, index) => sample(`${side} ${index}`, side, index))
    const shared = (side: string) =>
      Array.from({ length: documentsOfBoth }, (_, index) => sample(`both ${index}`, side, index))
    const local = [...own('local'), ...shared('local')]
    const remote = [...own('remote'), ...shared('remote')]
    for (let from = 0; from < local.length; from += batchSize) {
      const rows = await pouch.bulkDocs(local.slice(from, from + batchSize))
      expect(rows.filter(row => row.error)).to.deep.equal([])
      const { status, body } = await http.send('POST', `/${database}/_bulk_docs`, {
        json: { docs: remote.slice(from, from + batchSize) },
      })
      expect(status).to.equal(201)
      expect(body.filter((row: { error?: string }) => row.error)).to.deep.equal([])
    }
  }

  /** Returns whether `count` of the documents of the other side have arrived here. */
  async function pulled(count: number): Promise<boolean> {
    const { rows } = await pouch.allDocs()
    return rows.filter(row => row.id.startsWith('remote')).length >= count
  }

  async function editWhile(done: () => Promise<boolean>, nextRound: () => number): Promise<void> {
    do {
      const round = nextRound()
      for (let edit = 0; edit < editsEachRound; edit++) {
        const number = round * editsEachRound + edit
        await Promise.all([
          editHere(`both ${number % documentsOfBoth}`, number), editThere(`both ${number % documentsOfBoth}`, number),
        ])
      }
      // Each side sends its newest documents again.
      await Promise.all([
        editHere(`local ${documentsEach - 1 - round}`, 'delete'),
        editThere(`remote ${documentsEach - 1 - round}`, 'delete'),
      ])
    } while (!await done())
  }

  async function editHere(id: string, edit: number | 'delete'): Promise<void> {
    try {
      const document = await pouch.get(id)
      if (edit === 'delete') await pouch.remove(id, document._rev!)
      else if (edit % 5 === 0) {
        await pouch.putAttachment(
          id, `local ${edit}`, document._rev!, seededBytes(`local ${edit}`, 5000), 'application/octet-stream',
        )
      } else await pouch.put({ ...document, edit, by: 'local' })
    } catch (error) {
      // The replication was faster and changed the document, or the document is deleted.
      if (![404, 409].includes((error as { status?: number }).status ?? 0)) throw error
    }
  }

  async function editThere(id: string, edit: number | 'delete'): Promise<void> {
    const path = `/${database}/${encodeURIComponent(id)}`
    const { status, body } = await whenReachable(() => http.send('GET', path))
    if (status === 404) return
    const answer = await whenReachable(() =>
      edit === 'delete' ? http.send('DELETE', `${path}?rev=${body._rev}`) : http.send('PUT', path, {
        json: { ...body, edit, by: 'remote' },
      }))
    expect(answer.status, JSON.stringify(answer.body)).to.be.oneOf([200, 201, 202, 409])
  }

  /** Repeats a request that gets 502, which the balancer answers when a node crashes during the request. */
  function whenReachable(send: () => Promise<Answer>): Promise<Answer> {
    return eventually('an answer', syncMsMax, async () => {
      const answer = await send()
      if (answer.status >= 500) throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`)
      return answer
    })
  }

  async function expectEqual(): Promise<void> {
    const leaves = await leavesOf(localDatabase(pouch))
    const conflicts = [...leaves.values()].filter(revisions => revisions.length > 1).length
    expect(conflicts, 'documents with conflicts').to.be.above(documentsOfBoth / 2)
    const here = await contentsOf(localDatabase(pouch), leaves)
    const there = await contentsOf(remoteDatabase(http, database), leaves)
    for (const [revision, content] of here) {
      if (there.get(revision) !== content) {
        expect.fail(`${revision}:\n${content.slice(0, 2000)}\n${there.get(revision)?.slice(0, 2000)}`)
      }
    }
    const all = [...here.values()]
    expect(all.filter(content => content.includes('"_deleted":true')), 'deletions').to.have.length.above(roundsMin)
    expect(all.filter(content =>
      !content.endsWith(',[]]')), 'revisions with attachments').to.have.length.above(documentsEach / 10)
  }
})

/** One document in ten has a text, which servers compress; one in forty has content that does not compress. */
function sample(id: string, side: string, index: number): PouchDocument {
  const attachments = {
    ...(index % 10 === 0 ? { 'text/ü.txt': { content_type: 'text/plain', data: Buffer.from(`${id} `.repeat(300))
      .toString('base64') } } : {}),
    ...(index % 40 === 0 ? { photo: { content_type: 'image/jpeg', data: seededBytes(id, 60_000)
      .toString('base64') } } : {}),
  }
  return {
    _id: id, by: side, index, words: ['ä', '\u{1f6cb}', 'x'.repeat(100)],
    ...(Object.keys(attachments).length > 0 ? { _attachments: attachments } : {}),
  }
}
