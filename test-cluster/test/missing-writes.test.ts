import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { TestCluster, eventually } from '../src/test-cluster.ts'
import type { TestNode } from '../src/test-node.ts'

const documents = 200

/** Flips a bit in LevelDB's log of a store. @param part position in the log, from 0 (the beginning) to 1 (the end) */
function flipInLog(node: TestNode, store: string, part: number): void {
  const folder = join(dirname(node.logFile), 'data', 'stores', store)
  const logs = readdirSync(folder).filter(file => file.endsWith('.log')).map(file => join(folder, file))
  const log = logs.toSorted((a, b) => readFileSync(b).length - readFileSync(a).length)[0]!
  const bytes = readFileSync(log)
  bytes[Math.floor(part * (bytes.length - 1))]! ^= 4
  writeFileSync(log, bytes)
}

describe('a node whose disk lacks writes that it acknowledged', () => {
  let cluster: TestCluster
  afterEach(async function () { await cluster.close(this.currentTest?.state === 'failed') })

  const histories = async (): Promise<string[]> =>
    (await cluster.replicas(3, 'load')).filter(({ node }) => node === cluster.node(3).name)
      .map(({ history }) => history)

  for (const [what, part] of [['in the middle of', 0.5], ['at the end of', 1]] as const) {
    it(`replaces its replicas after a flipped bit ${what} the log of its documents`, async () => {
      cluster = await TestCluster.start({ nodes: 3 })
      await cluster.node(1).http.send('PUT', '/load?q=2')
      for (let index = 0; index < documents; index++) {
        expect((await cluster.write(1 + index % 3, 'load', `doc ${index}`, { index })).status).to.equal(201)
      }
      await cluster.converge('load')
      const before = await histories()
      await cluster.node(3).crash()
      flipInLog(cluster.node(3), 'documents', part)
      cluster.node(3).start()
      await cluster.ready()
      await eventually('its replicas have begun another life', 30_000, async () => {
        const after = await histories()
        expect(after).to.have.lengthOf(before.length)
        for (const history of before) expect(after).to.not.include(history)
      })
      expect(cluster.node(3).log()).to.include('writes that this node acknowledged are missing on its disk')
      await eventually('its replicas are rebuilt', 30_000, async () =>
        expect(cluster.node(3).log().split('a damaged replica was rebuilt').length - 1).to.equal(before.length))
      await cluster.converge('load')
      const replicas = (await cluster.replicas(3, 'load')).filter(({ node }) => node === cluster.node(3).name)
      expect(replicas.reduce((sum, replica) => sum + replica.document_count, 0)).to.equal(documents)
    })
  }

  it('does not start after a flipped bit in the log of its metadata, and names the remedy', async () => {
    cluster = await TestCluster.start({ nodes: 3 })
    await cluster.node(1).http.send('PUT', '/load?q=2')
    await cluster.node(3).crash()
    flipInLog(cluster.node(3), 'control', 0.5)
    cluster.node(3).start()
    await eventually('it ends', 30_000, async () => expect(cluster.node(3).running).to.equal(false))
    expect(cluster.node(3).log()).to.match(
      /metadata of the cluster on this disk is damaged.*empty this node's data directory/,
    )
    cluster.node(3).wipe()
    cluster.node(3).start()
    await cluster.ready()
    await cluster.converge('load')
  })
})
