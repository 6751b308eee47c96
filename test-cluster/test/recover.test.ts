import { execFile } from 'node:child_process'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { TestCluster, eventually } from '../src/test-cluster.ts'
import type { TestNode } from '../src/test-node.ts'

const command = fileURLToPath(new URL('../../packages/server/dist/cli.js', import.meta.url))

interface Run { readonly status: number; readonly output: string }

/** Runs `sectional recover` on a node's folder, without a terminal. */
function recover(node: TestNode, ...flags: readonly string[]): Promise<Run> {
  return new Promise(resolve => {
    const words = [command, 'recover', '--config', dirname(node.logFile), ...flags]
    const child = execFile(process.execPath, words, (error, stdout, stderr) => {
      resolve({ status: error === null ? 0 : Number(error.code), output: stdout + stderr })
    })
    child.stdin?.end()
  })
}

describe('sectional recover', () => {
  let cluster: TestCluster
  afterEach(async function () { await cluster.close(this.currentTest?.state === 'failed') })

  for (const [nodes, survivor] of [[3, 2], [2, 1]] as const) {
    it(`brings a cluster of ${nodes} back after the loss of all disks but one`, async () => {
      cluster = await TestCluster.start({ nodes })
      const node = cluster.node(survivor)
      const others = cluster.nodes.filter(other => other !== node)
      expect((await node.http.send('PUT', '/places?q=4')).status).to.equal(201)
      expect((await node.http.send('PUT', '/single?q=8&n=1')).status).to.equal(201)
      const written: string[] = []
      for (let index = 0; index < 60; index++) {
        const answer = await cluster.write(1 + index % nodes, 'places', `doc ${index}`, { index })
        if (answer.status === 201) written.push(`doc ${index}`)
      }
      await cluster.converge('places')
      expect(written).to.have.length(60)

      expect(await recover(node, '--yes').then(({ status, output }) => [status, output.trim()])).to.deep.equal([
        1, 'sectional: The node is running: stop it first.',
      ])
      await node.stop()
      if (nodes === 3) {
        expect((await recover(node, '--yes')).output).to.match(
          /with this node they are a majority of the voters .*start this node/,
        )
      } else expect((await recover(node, '--yes')).output).to.match(/majority of the voters/)

      for (const other of others) {
        await other.crash()
        other.wipe()
      }
      const asked = await recover(node)
      expect(asked.status, asked.output).to.equal(1)
      expect(asked.output).to.match(/The input is no terminal.*--yes/)
      for (const other of others) expect(asked.output).to.contain(other.name)
      expect(asked.output).to.match(
        /ALL documents of these shards, which have no replica here and begin empty:\n {4}single /,
      )
      const done = await recover(node, '--yes')
      expect(done.status, done.output).to.equal(0)

      node.start()
      await cluster.ready([survivor])
      for (const id of written) expect((await cluster.read(survivor, 'places', id)).status, id).to.equal(200)
      expect((await node.http.send('PUT', '/made-afterwards')).status).to.equal(201)
      expect((await cluster.write(survivor, 'places', 'made afterwards', { n: 1 })).status).to.equal(201)

      for (const other of others) other.start()
      await cluster.ready()
      const replicas = await eventually('the lost replicas to be filled on the new members', 60_000, async () => {
        const { body } = await node.http.send('GET', '/_node/_local/_replicas/places')
        const reports = await cluster.converge('places')
        if (reports.length !== 4 * nodes || body.replicas.some((replica: { filling: boolean }) => replica.filling)) {
          throw new Error(`${reports.length} replicas`)
        }
        return reports
      })
      expect(replicas.filter(replica => replica.node === node.name)
        .reduce((sum, replica) => sum + replica.document_count, 0)).to.equal(61)
      for (const { number } of cluster.nodes) {
        expect((await cluster.read(number, 'places', 'doc 7', `?r=${nodes}`)).status).to.equal(200)
      }
    })
  }

  it('keeps old members out until their disks are emptied, and refuses to run while one of them answers', async () => {
    cluster = await TestCluster.start({ nodes: 5 })
    expect((await cluster.node(1).http.send('PUT', '/places')).status).to.equal(201)
    for (const number of [3, 4, 5]) {
      await cluster.node(number).crash()
      cluster.node(number).wipe()
    }
    await cluster.node(1).stop()
    const refused = await eventually('node 2 to notice that its leader is lost', 20_000, async () => {
      const answer = await recover(cluster.node(1), '--yes')
      if (answer.output.includes('try again in some seconds')) throw new Error(answer.output)
      return answer
    })
    expect(refused.output, refused.output).to.match(/Stop node2@127.0.0.1 first/)
    await cluster.node(2).stop()
    expect((await recover(cluster.node(1), '--yes')).status).to.equal(0)
    cluster.node(1).start()
    await cluster.ready([1])
    cluster.node(2).start()
    await eventually('the log line about the old member', 20_000, async () => {
      expect(cluster.node(2).log()).to.match(/node2@127.0.0.1 to cluster|node2@127.0.0.1 belongs to cluster/)
    })
    expect((await cluster.node(1).http.send('GET', '/_membership')).body).to.deep.equal({
      all_nodes: [cluster.node(1).name], cluster_nodes: [cluster.node(1).name],
    })
    await cluster.node(2).stop()
    cluster.node(2).wipe()
    cluster.node(2).start()
    await cluster.ready([1, 2])
    expect((await cluster.node(1).http.send('GET', '/_membership')).body.cluster_nodes).to.deep.equal([
      cluster.node(1).name, cluster.node(2).name,
    ])
  })
})
