import { expect } from 'chai'
import { TestCluster, eventually } from '../src/test-cluster.ts'
import { Writer } from '../src/writer.ts'

const writers = 8

/** Writes load, and kills the nodes that `crash` picks during it, `rounds` times. */
async function crashUnderLoad(
  cluster: TestCluster, database: string, rounds: number, pick: (round: number) => number,
): Promise<Writer> {
  const writer = new Writer(cluster, database)
  const load = Array.from({ length: writers }, (_, index) => writer.run(`writer ${index}`))
  for (let round = 0; round < rounds; round++) {
    const before = writer.acknowledged.size
    await eventually('more writes', 30_000, async () => expect(writer.acknowledged.size).to.be.above(before + 50))
    const node = cluster.node(pick(round))
    await node.crash()
    node.start()
    await cluster.ready()
  }
  writer.stop()
  await Promise.all(load)
  return writer
}

describe('SIGKILL under load', () => {
  let cluster: TestCluster
  afterEach(async function () { await cluster.close(this.currentTest?.state === 'failed') })

  it('of a single node, many times, loses no acknowledged write', async () => {
    cluster = await TestCluster.start({ nodes: 1 })
    await cluster.node(1).http.send('PUT', '/load')
    const { acknowledged } = await crashUnderLoad(cluster, 'load', 10, () => 1)
    for (const [id, revision] of acknowledged) {
      const { status, body } = await cluster.read(1, 'load', id)
      expect(`${id} ${status} ${body._rev}`).to.equal(`${id} 200 ${revision}`)
    }
  })

  it('of one node after the other in a cluster of three loses no acknowledged write', async () => {
    cluster = await TestCluster.start({ nodes: 3 })
    await cluster.node(1).http.send('PUT', '/load?q=4')
    const { acknowledged } = await crashUnderLoad(cluster, 'load', 6, round => 1 + round % 3)
    await cluster.converge('load')
    for (const [id, revision] of acknowledged) {
      for (const node of cluster.nodes) {
        const { status, body } = await cluster.read(node.number, 'load', id, '?r=3&conflicts=true')
        expect(`${id} ${status} ${body._rev} ${body._conflicts}`).to.equal(`${id} 200 ${revision} undefined`)
      }
    }
  })

  it('or a pause (SIGSTOP): the node catches up when it continues', async () => {
    cluster = await TestCluster.start({ nodes: 3 })
    await cluster.node(1).http.send('PUT', '/load?q=2')
    cluster.node(2).pause()
    const ids = Array.from({ length: 40 }, (_, index) => `doc ${index}`)
    for (const id of ids) expect((await cluster.write(1, 'load', id, { id })).status).to.equal(201)
    cluster.node(2).continue()
    await cluster.ready()
    await cluster.converge('load')
    for (const id of ids) expect((await cluster.read(2, 'load', id)).status).to.equal(200)
  })
})
