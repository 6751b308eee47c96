import { expect } from 'chai'
import { setTimeout as pause } from 'node:timers/promises'
import { TestCluster, eventually } from '../src/test-cluster.ts'

/** Milliseconds between two requests to a starting node. */
const pollMs = 5

describe('members of a cluster of real processes', () => {
  let cluster: TestCluster
  afterEach(async function () { await cluster.close(this.currentTest?.state === 'failed') })

  it('serve after a restart only what was acknowledged while they were away', async () => {
    cluster = await TestCluster.start({ nodes: 3 })
    await cluster.node(1).http.send('PUT', '/places')
    await cluster.converge('places')
    await cluster.node(3).crash()
    await eventually(
      'a leader', 10_000,
      async () => expect((await cluster.node(1).http.send('PUT', '/later')).status).to.be.oneOf([201, 412]),
    )
    for (let index = 0; index < 20; index++) {
      expect((await cluster.write(1 + index % 2, 'places', `doc ${index}`, { index })).status).to.equal(201)
    }
    cluster.node(3).start()
    const seen = new Set<string>()
    let up = false
    for (let index = 0; !up; index++) {
      try {
        const [document, later, written, ready] = await Promise.all([
          cluster.read(3, 'places', `doc ${index % 20}`), cluster.node(3).http.send('GET', '/later'),
          cluster.write(3, 'places', `lone ${index}`, {}),
          cluster.node(3).http.send('GET', '/_up'),
        ])
        seen.add(`document ${document.status}`).add(`later ${later.status}`).add(`write ${written.status}`)
          .add(`up ${ready.status}`)
        up = ready.status === 200
      } catch (error) {
        // The node does not listen yet.
        if (!/ECONNREFUSED|ECONNRESET|socket/.test(String(error))) throw error
      }
      await pause(pollMs)
    }
    const allowed = [
      'document 200', 'document 503', 'later 200', 'later 503', 'write 201', 'write 503', 'up 200', 'up 404',
    ]
    expect([...seen].filter(what => !allowed.includes(what))).to.deep.equal([])
    expect([...seen]).to.include('up 404')
    expect((await cluster.read(3, 'places', 'doc 7')).body.index).to.equal(7)
  })

  it('keep their links while a second process uses the name of one', async () => {
    cluster = await TestCluster.start({
      nodes: 4, seeds: 3, nodeSettings: { 4: { 'node/name': 'node2@127.0.0.1' } }, running: [1, 2, 3],
    })
    await cluster.node(1).http.send('PUT', '/places')
    const linksClosed = (): number =>
      [1, 2, 3].reduce((sum, number) => sum + cluster.node(number).log().split('a link closed').length - 1, 0)
    const before = linksClosed()
    cluster.node(4).start()
    await eventually('the second process to be refused', 20_000, async () => {
      expect(cluster.node(4).log()).to.match(/another process has its name/)
      const { status, body } = await cluster.node(4).http.send('GET', '/_up')
      expect(status).to.equal(404)
      expect(body.reason).to.match(/a node named node2@127\.0\.0\.1 is up at .*: set another \[node\] name here/)
    })
    for (let index = 0; index < 60; index++) {
      expect((await cluster.write(1 + index % 3, 'places', `doc ${index}`, { index })).status).to.equal(201)
      await pause(50)
    }
    expect(linksClosed()).to.equal(before)
    expect((await cluster.node(4).http.send('GET', '/places')).status).to.equal(503)
  })

  it('admit a seed that returns with an empty disk and has only itself in its seed list', async () => {
    cluster = await TestCluster.start({ nodes: 3, seeds: 1 })
    await cluster.node(2).http.send('PUT', '/places')
    expect((await cluster.write(2, 'places', 'kept', { v: 1 })).status).to.equal(201)
    await cluster.converge('places')
    await cluster.node(1).crash()
    cluster.node(1).wipe()
    cluster.node(1).start()
    await cluster.ready()
    const ids = await Promise.all(
      [1, 2, 3].map(async number => (await cluster.node(number).http.send('GET', '/')).body.uuid as string),
    )
    expect(new Set(ids).size).to.equal(1)
    expect((await cluster.read(1, 'places', 'kept')).body.v).to.equal(1)
  })
})
