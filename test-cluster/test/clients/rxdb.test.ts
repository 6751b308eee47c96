import { expect } from 'chai'
import { Balancer } from '../../src/balancer.ts'
import { HttpClient } from '../../src/http-client.ts'
import { RxClient, type Task } from '../../src/rx.ts'
import { TestCluster, eventually } from '../../src/test-cluster.ts'
import { administrator } from '../../src/test-node.ts'

const tasksEach = 300
const rounds = 20
const convergeMsMax = 60_000

describe('rxdb with its CouchDB replication', function () {
  this.timeout(120_000)
  let cluster: TestCluster
  let balancer: Balancer
  let http: HttpClient
  const clients: RxClient[] = []
  beforeEach(async () => {
    cluster = await TestCluster.start({ nodes: 3 })
    balancer = await Balancer.open(cluster.nodes)
    http = new HttpClient(balancer.port, administrator)
    expect((await http.send('PUT', '/tasks')).status).to.equal(201)
    for (const name of ['ann', 'bob']) {
      clients.push(await RxClient.open(name, `http://127.0.0.1:${balancer.port}/tasks/`))
    }
  })
  afterEach(async function () {
    for (const client of clients.splice(0)) await client.close()
    http.close()
    await balancer.close()
    await cluster.close(this.currentTest?.state === 'failed')
  })

  it('lets two clients converge that edit the same documents while a node is killed and started again', async () => {
    await Promise.all(clients.map(({ name, tasks }) =>
      tasks.bulkInsert(Array.from({ length: tasksEach }, (_, index) => task(`${name} ${index}`, name)))))
    // Both clients created these documents; one of the two revisions wins.
    await Promise.all(clients.map(({ name, tasks }) =>
      tasks.bulkInsert(Array.from({ length: tasksEach / 3 }, (_, index) => task(`both ${index}`, name)))))
    await converged()
    await cluster.node(1).crash()
    for (let round = 0; round < rounds; round++) await Promise.all(clients.map(client => edit(client, round)))
    cluster.node(1).start()
    for (let round = rounds; round < 2 * rounds; round++) await Promise.all(clients.map(client => edit(client, round)))
    await cluster.ready()
    const contents = await converged()
    expect(contents).to.have.length(2 * tasksEach + tasksEach / 3 - 2 * rounds)
    expect(contents.filter(({ done }) => done)).to.have.length.above(rounds)
    await cluster.converge('tasks')
    expect(await stored()).to.deep.equal(contents)
  })

  async function edit({ name, tasks }: RxClient, round: number): Promise<void> {
    const shared = await tasks.findOne(`both ${round}`).exec()
    await shared!.incrementalPatch({ title: `as ${name} has it`, done: true, by: name })
    const other = await tasks.findOne(`${name === 'ann' ? 'bob' : 'ann'} ${round + rounds * 2}`).exec()
    await other!.incrementalPatch({ done: true, by: name })
    if (round % 2 === 0) await (await tasks.findOne(`${name} ${round}`).exec())!.incrementalRemove()
  }

  /** Waits until both clients and the server have the same tasks, and returns these. */
  async function converged(): Promise<Task[]> {
    return eventually('the clients and the server to have the same tasks', convergeMsMax, async () => {
      await Promise.all(clients.map(client => client.synchronized()))
      const [first, second] = await Promise.all(clients.map(client => client.contents()))
      expect(first).to.deep.equal(second)
      expect(await stored()).to.deep.equal(first)
      return first!
    })
  }

  async function stored(): Promise<Task[]> {
    const { body } = await http.send('GET', '/tasks/_all_docs?include_docs=true')
    const documents = body.rows.map(({ doc: { _id, _rev, ...members } }: { readonly doc: Record<string, unknown> }) =>
      ({ id: _id, ...members })) as Task[]
    return documents.sort((a, b) => a.id < b.id ? -1 : 1)
  }
})

function task(id: string, by: string): Task {
  return { id, title: `${id} — ☕`, done: false, by }
}
