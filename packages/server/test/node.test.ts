import { expect } from 'chai'
import { MemoryCluster } from './memory-cluster.ts'

describe('nodes in one process', () => {
  it('form a cluster, keep a document on every node and leave nothing behind when they stop', async () => {
    const cluster = new MemoryCluster(3)
    for (const number of [3, 1, 2]) await cluster.start(number)
    await cluster.ready()
    expect((await cluster.send(2, 'GET', '/_membership')).body.cluster_nodes).to.deep.equal(cluster.names)
    expect((await cluster.send(1, 'PUT', '/db?q=2')).status).to.equal(201)
    expect((await cluster.send(2, 'PUT', '/db/a', { x: 1 })).status).to.equal(201)
    for (const number of [1, 2, 3]) expect((await cluster.send(number, 'GET', '/db/a?r=3')).body.x).to.equal(1)
    await cluster.close()
    expect(cluster.clock.pendingTimers).to.equal(0)
  })

  it('keep acknowledged writes when one node crashes, and bring it up to date when it is back', async () => {
    const cluster = new MemoryCluster(3)
    for (const number of [1, 2, 3]) await cluster.start(number)
    await cluster.ready()
    await cluster.send(1, 'PUT', '/db?q=2')
    expect((await cluster.send(3, 'PUT', '/db/before', { x: 1 })).status).to.equal(201)
    cluster.crash(3)
    expect((await cluster.send(1, 'PUT', '/db/after', { x: 2 })).status).to.equal(201)
    await cluster.start(3)
    await cluster.ready()
    const digests = async () => {
      const answers = await Promise.all(
        [1, 2, 3].map(number => cluster.send(number, 'GET', '/_node/_local/_replicas/db')),
      )
      return new Set(
        answers.map(({ body }) => body.replicas.map((replica: { digest: string }) => replica.digest).join()),
      )
    }
    await cluster.until('equal replicas', async () => (await digests()).size === 1)
    await cluster.close()
  })

  it('drop the replicas of a deleted database', async () => {
    const cluster = new MemoryCluster(1)
    await cluster.start(1)
    await cluster.ready()
    await cluster.send(1, 'PUT', '/db?q=4')
    const replicas = async () =>
      (await cluster.send(1, 'GET', '/_node/_local/_stats/couchdb/open_databases')).body.value
    await cluster.until('replicas', async () => await replicas() === 4)
    expect((await cluster.send(1, 'DELETE', '/db')).status).to.equal(200)
    await cluster.until('no replicas', async () => await replicas() === 0)
    expect((await cluster.send(1, 'GET', '/_node/_local/_replicas/db')).status).to.equal(404)
    await cluster.close()
  })

  it('leave nothing open when they are stopped while they start', async () => {
    const cluster = new MemoryCluster(1)
    await cluster.start(1)
    await cluster.ready()
    await cluster.stop(1)
    const { node, runtime } = await cluster.make(1)
    const started = node.start().then(() => 'started', (error: Error) => error.message)
    await cluster.finish(node.stop())
    expect(await cluster.finish(started)).to.equal('the node was stopped while it started')
    expect(runtime.disk.openStores).to.deep.equal([])
    expect(cluster.clock.pendingTimers).to.equal(0)
  })

  it('report the problem and leave nothing open when an address is in use', async () => {
    const cluster = new MemoryCluster(2)
    await cluster.start(1)
    await cluster.hub.network('host2').listen({ host: 'host2', port: 9000 }, () => {})
    const error = await cluster.start(2).then(() => null, (failure: Error) => failure)
    expect(error?.message).to.contain('9000')
    await cluster.close()
    expect(cluster.clock.pendingTimers).to.equal(0)
  })
})
