import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { testAuthority } from '../../packages/runtime/src/tls/test-certificates.ts'
import { TestCluster, eventually } from '../src/test-cluster.ts'

describe('a cluster of real processes', () => {
  let cluster: TestCluster
  afterEach(async function () { await cluster.close(this.currentTest?.state === 'failed') })

  it('forms whatever the order in which nodes start, and keeps documents that any node stores', async () => {
    cluster = await TestCluster.prepare({ nodes: 3 })
    cluster.node(3).start()
    cluster.node(2).start()
    for (const number of [2, 3]) {
      await eventually(
        'an answer', 10_000,
        async () => expect((await cluster.node(number).http.send('GET', '/_up')).status).to.equal(404),
      )
    }
    cluster.node(1).start()
    await cluster.ready()
    const { body } = await cluster.node(1).http.send('GET', '/_membership')
    const names = cluster.nodes.map(node => node.name)
    expect(body).to.deep.equal({ all_nodes: names, cluster_nodes: names })

    expect((await cluster.node(2).http.send('PUT', '/places')).status).to.equal(201)
    for (const node of cluster.nodes) {
      const written = await cluster.write(node.number, 'places', `from ${node.number}`, { at: node.name })
      expect(written.status).to.equal(201)
    }
    for (const reader of cluster.nodes) {
      for (const writer of cluster.nodes) {
        const { body } = await cluster.read(reader.number, 'places', `from ${writer.number}`, '?r=3')
        expect(body.at).to.equal(writer.name)
      }
    }
  })

  it('has its documents after every node was stopped and started', async () => {
    cluster = await TestCluster.start({ nodes: 3 })
    await cluster.node(1).http.send('PUT', '/places')
    await cluster.write(1, 'places', 'kept', { n: 12345678901234567890n.toString() })
    for (const node of cluster.nodes) await node.stop()
    for (const node of [...cluster.nodes].reverse()) node.start()
    await cluster.ready()
    for (const node of cluster.nodes) expect((await cluster.read(node.number, 'places', 'kept')).status).to.equal(200)
  })

  it('continues while one of three nodes is away, and the node catches up when it returns', async () => {
    cluster = await TestCluster.start({ nodes: 3 })
    await cluster.node(1).http.send('PUT', '/places?q=2')
    await cluster.node(3).crash()
    for (let index = 0; index < 50; index++) {
      expect((await cluster.write(1 + index % 2, 'places', `doc ${index}`, { index })).status).to.equal(201)
    }
    cluster.node(3).start()
    await cluster.ready()
    const replicas = await cluster.converge('places')
    expect(replicas).to.have.length(6)
    expect(replicas.filter(replica => replica.node === cluster.node(3).name)
      .reduce((sum, replica) => sum + replica.document_count, 0)).to.equal(50)
  })

  it('uses TLS between nodes when it is configured, and refuses nodes without a certificate', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sectional-tls-'))
    const tls = (name: string): Record<string, string> => Object.fromEntries(
      Object.entries(testAuthority(name).identity).map(([part, pem]) => {
        writeFileSync(join(folder, `${name}-${part}.pem`), pem)
        return [`cluster/tls_${part}_file`, join(folder, `${name}-${part}.pem`)]
      }),
    )
    cluster = await TestCluster.start({ nodes: 3, settings: tls('cluster') })
    expect((await cluster.node(1).http.send('PUT', '/places')).status).to.equal(201)
    expect((await cluster.write(2, 'places', 'encrypted', { n: 1 })).status).to.equal(201)
    expect((await cluster.read(3, 'places', 'encrypted', '?r=3')).body.n).to.equal(1)
    for (const settings of [{}, tls('stranger')]) {
      const stranger = await TestCluster.prepare({
        nodes: 1,
        settings: { 'node/name': 'stranger@127.0.0.1', 'cluster/seedlist': cluster.node(1).seed, ...settings },
      })
      try {
        stranger.node(1).start()
        await eventually(
          'the stranger to say that it gets no answer', 20_000,
          async () => expect(stranger.node(1).log()).to.match(/cannot be reached/),
        )
        expect((await stranger.node(1).http.send('GET', '/_up')).status).to.equal(404)
      } finally {
        await stranger.close()
      }
    }
    expect((await cluster.node(1).http.send('GET', '/_membership')).body.cluster_nodes).to.have.length(3)
    rmSync(folder, { recursive: true })
  })

  it('refuses a node with another secret, and reports it in its log', async () => {
    cluster = await TestCluster.start({ nodes: 1 })
    const stranger = await TestCluster.prepare({
      nodes: 1,
      settings: {
        'node/name': 'stranger@127.0.0.1', 'cluster/secret': 'x'.repeat(40), 'cluster/seedlist': cluster.node(1).seed,
      },
    })
    try {
      stranger.node(1).start()
      await eventually('the log line about the stranger', 20_000, async () => {
        expect(cluster.node(1).log()).to.match(/secret/i)
      })
      const { body } = await cluster.node(1).http.send('GET', '/_membership')
      expect(body.cluster_nodes).to.deep.equal([cluster.node(1).name])
      expect((await stranger.node(1).http.send('GET', '/_up')).status).to.equal(404)
    } finally {
      await stranger.close()
    }
  })
})
