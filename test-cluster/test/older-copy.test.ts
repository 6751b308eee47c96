import { cpSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { TestCluster, eventually } from '../src/test-cluster.ts'

describe('a node whose data directory is an older copy', () => {
  let cluster: TestCluster
  afterEach(async function () { await cluster.close(this.currentTest?.state === 'failed') })

  it('reports it, is admitted again, and receives the writes that it lacks', async () => {
    cluster = await TestCluster.start({ nodes: 3 })
    const old = cluster.node(3)
    const data = join(dirname(old.logFile), 'data')
    for (const name of ['places', 'deleted']) {
      expect((await cluster.node(1).http.send('PUT', `/${name}?q=2`)).status).to.equal(201)
    }
    const write = async (through: number, from: number, to: number): Promise<void> => {
      for (let at = from; at < to; at++) {
        expect((await cluster.write(through, 'places', `doc ${at}`, { at })).status).to.be.oneOf([201, 202])
      }
    }
    await write(1, 0, 20)
    await cluster.converge('places')
    await old.stop()
    cpSync(data, `${data}.copy`, { recursive: true })
    old.start()
    await cluster.ready()
    await write(3, 20, 40)
    expect((await cluster.node(1).http.send('PUT', '/new')).status).to.equal(201)
    expect((await cluster.node(1).http.send('DELETE', '/deleted')).status).to.equal(200)
    await cluster.converge('places')

    await old.crash()
    rmSync(data, { recursive: true })
    cpSync(`${data}.copy`, data, { recursive: true })
    old.start()
    await write(1, 40, 60)
    await eventually(
      'the older copy to be given up', 30_000,
      async () => expect(old.log()).to.match(/is an older copy of the one that it had/),
    )
    await cluster.ready()
    await eventually('the same databases on the node', 30_000, async () => {
      expect((await old.http.send('GET', '/_all_dbs')).body).to.deep.equal(['new', 'places'])
    })
    const replicas = await cluster.converge('places')
    expect(replicas.filter(replica => replica.node === old.name)
      .reduce((sum, replica) => sum + replica.document_count, 0)).to.equal(60)
    await eventually('nothing to be filled any more', 30_000, async () => {
      const { body } = await old.http.send('GET', '/_node/_local/_replicas/places')
      expect(body.replicas.map((replica: { filling: boolean }) => replica.filling)).to.deep.equal([false, false])
    })
    for (let at = 0; at < 60; at++) {
      expect((await cluster.read(3, 'places', `doc ${at}`)).status, `doc ${at}`).to.equal(200)
    }
    expect((await old.http.send('PUT', '/made-by-the-old-node')).status).to.equal(201)
  })
})
