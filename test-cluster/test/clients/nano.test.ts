import { expect } from 'chai'
import nano from 'nano'
import { setTimeout as pause } from 'node:timers/promises'
import { Balancer } from '../../src/balancer.ts'
import { NanoUser, type Note } from '../../src/nano-traffic.ts'
import { TestCluster, eventually } from '../../src/test-cluster.ts'
import type { TestNode } from '../../src/test-node.ts'

const users = 12
/** Milliseconds of traffic without pauses between requests. */
const trafficMs = 60_000
const readMsMax = 60_000

describe('nano', function () {
  this.timeout(300_000)
  let cluster: TestCluster
  let balancer: Balancer
  let reader: nano.ChangesReaderScope | undefined
  beforeEach(async () => {
    // nano does not ask for JSON when it sends attachments, and would return the answer as text.
    cluster = await TestCluster.start({ nodes: 3, settings: { 'chttpd/json_default_type': 'application/json' } })
    balancer = await Balancer.open(cluster.nodes)
  })
  afterEach(async function () {
    reader?.stop()
    await balancer.close()
    await cluster.close(this.currentTest?.state === 'failed')
  })

  it('gets the expected answers, and its changes reader receives all changes, while a node is restarted', async () => {
    const server = nano(balancer.url)
    await server.db.create('traffic')
    const database = server.use<Note>('traffic')
    const lastSeen = new Map<string, string>()
    reader = server.use<Note>('traffic').changesReader
    const fatal: unknown[] = []
    reader.start({ since: '0', batchSize: 200, timeout: 10_000 })
      .on('change', (row: nano.DatabaseChangesResultItem) => lastSeen.set(row.id, row.changes[0]!.rev))
      .on('error', (error: { statusCode?: number }) => { if ((error.statusCode ?? 500) < 500) fatal.push(error) })

    let stopped = false
    const crowd = Array.from({ length: users }, (_, index) => new NanoUser(database, `user${index}`, index))
    const traffic = Promise.all(crowd.map(user => user.run(() => stopped).finally(() => { stopped = true })))
    await Promise.race([traffic, restartInTheMiddle()])
    stopped = true
    await traffic

    await Promise.all(crowd.map(user => user.verify()))
    const expected = new Map(
      crowd.flatMap(user => [...[...user.known].map(([id, { rev }]) => [id, rev] as const), ...user.deleted]),
    )
    await eventually('the changes reader to hear of every last revision', readMsMax, async () => {
      const missed = [...expected].filter(([id, rev]) => lastSeen.get(id) !== rev)
      if (missed.length > 0) {
        throw new Error(
          `${missed.length} of ${expected.size} are missed, as ${missed[0]}, seen was ${lastSeen.get(missed[0]![0])}`,
        )
      }
    })
    expect(fatal).to.deep.equal([])
    expect(await spooled(database)).to.deep.equal(expected)
    expect((await server.db.get('traffic')).doc_count).to.equal(crowd.reduce((sum, user) => sum + user.known.size, 0))
    expect(crowd.reduce((sum, user) => sum + user.operations, 0)).to.be.above(users * 100)
  })

  /**
   * Restarts nodes like operators do: the balancer leaves the node out first, and uses it again when it has caught up.
   */
  async function restartInTheMiddle(): Promise<void> {
    const node = cluster.node(3)
    await pause(trafficMs / 3)
    await setMaintenanceMode(node, 'true')
    await eventually(
      'the balancer to leave the node out, and its last answers', readMsMax,
      async () => expect(balancer.isDrained(node)).to.equal(true),
    )
    await node.stop()
    await pause(trafficMs / 6)
    node.start()
    await eventually('the node to have caught up', readMsMax, async () => {
      const replicas = await cluster.replicas(3, 'traffic')
      if (replicas.length === 0 || replicas.some(replica => replica.catching_up)) throw new Error('it has not')
    })
    await setMaintenanceMode(node, 'false')
    await pause(trafficMs / 3)
  }
})

async function setMaintenanceMode({ http }: TestNode, mode: string): Promise<void> {
  const option = '/_node/_local/_config/couchdb/maintenance_mode'
  expect((await http.send('PUT', option, { json: mode })).status).to.equal(200)
}

/** Reads the whole feed in one request. */
function spooled(database: nano.DocumentScope<Note>): Promise<Map<string, string>> {
  return new Promise((resolve, reject) => {
    const found = new Map<string, string>()
    database.changesReader.spool({ since: '0', batchSize: 500 })
      .on('batch', (rows: nano.DatabaseChangesResultItem[]) => {
        for (const { id, changes } of rows) found.set(id, changes[0]!.rev)
      })
      .on('error', reject)
      .on('end', () => resolve(found))
  })
}
