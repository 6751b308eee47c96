import assert from 'node:assert/strict'
import type { ForeignContact } from '@sectional/core'
import type { Network } from '@sectional/runtime'
import { RawPeer } from '../raw-peer.ts'
import { context, failure, TestWorld } from '../test-node.ts'

describe('contacts of peers', () => {
  let world: TestWorld
  let attempts: number
  beforeEach(() => {
    world = new TestWorld()
    attempts = 0
  })
  afterEach(async () => { assert.deepEqual(await world.stop(), { connections: 0, timers: 0 }) })

  /** Counts attempts to connect, all of which reach the host `a`. */
  function counted(network: Network): Network {
    return {
      listen: network.listen.bind(network),
      connect: (address, options) => {
        attempts++
        return network.connect({ ...address, host: 'a' }, options)
      },
    }
  }

  it('from another cluster are reported at both ends, until the listener leaves', async () => {
    const a = world.node('a', { clusterId: 'c2' })
    const b = await world.node('b').start()
    const seen: [string, ForeignContact][] = []
    const leave = a.peers.onForeign(contact => { seen.push(['a', contact]) })
    b.peers.onForeign(contact => { seen.push(['b', contact]) })
    await a.peers.start(a.handlers)
    a.peers.setPeers(['b:1'], new Map([['b:1', 'b']]))
    await world.settle()
    assert.deepEqual(seen.sort(), [
      ['a', { peer: b.identity, dialed: 'b:1', claimed: false }],
      ['b', { peer: a.identity, dialed: null, claimed: true }],
    ])
    leave()
    await world.clock.advance(2000)
    assert(seen.length > 2)
    assert.deepEqual(new Set(seen.slice(2).map(([name]) => name)), new Set(['b']))
  })

  it('of a node with itself under another name of its host end after the first one', async () => {
    const a = await world.node('a', { network: counted(world.hub.network('a')) }).start()
    a.peers.setPeers(['other-name:1'])
    await world.clock.advance(60_000)
    assert.deepEqual([attempts, a.connected()], [1, []])
  })

  it('of a node with two addresses go on with the other one when that of their link cannot be reached', async () => {
    const reachable = new Set(['first', 'second'])
    const network = world.hub.network('a')
    const dialing: Network = {
      listen: network.listen.bind(network),
      connect: async ({ host, port }, options) => {
        if (!reachable.has(host)) throw new Error(`${host} is unknown`)
        return network.connect({ host: 'b', port }, options)
      },
    }
    await world.node('b').start()
    const a = await world.node('a', { network: dialing }).start()
    for (const addresses of [['first:1'], ['first:1', 'second:1']]) {
      a.peers.setPeers(addresses)
      await world.settle()
      assert.deepEqual(a.connected(), ['b'])
    }
    reachable.delete('first')
    world.hub.kill(() => true)
    await world.clock.advance(5000)
    assert.deepEqual(a.connected(), ['b'])
  })

  it('with another process of the same name go on, because it may be given another name', async () => {
    await world.node('a', { network: world.hub.network('a2'), port: 2, seed: 1000 }).start()
    const a = await world.node('a', { network: counted(world.hub.network('a')) }).start()
    a.peers.setPeers(['a:2'])
    await world.clock.advance(60_000)
    assert(attempts > 1)
    assert.deepEqual(a.connected(), [])
  })

  it('that have not finished their handshake end with the node, and with its identity', async () => {
    const b = await world.node('b').start()
    const closed: string[] = []
    const contact = async (): Promise<void> => {
      const silent = await world.hub.network('x').connect({ host: 'b', port: 1 }, { timeoutMs: 1000 })
      silent.onFrame = () => {}
      silent.onClose = reason => { closed.push(reason) }
      await world.settle()
    }
    await contact()
    b.peers.setIdentity({ ...b.identity, clusterId: 'c3' })
    await world.settle()
    assert.match(closed[0]!, /identity of the node has changed/)
    await contact()
    const startedMs = world.clock.monotonic()
    await world.during(b.peers.stop())
    assert(world.clock.monotonic() - startedMs < 1000)
    assert.match(closed[1]!, /this node is stopping/)
  })

  it('are refused calls as long as this node is starting', async () => {
    const b = await world.node('b').start()
    const a = world.node('a')
    a.peers.setPeers(['b:1'])
    await world.settle()
    assert.deepEqual(b.connected(), ['a'])
    assert.equal((await failure(b.peers.control('a').status(context))).code, 'closed')
  })

  it('of one process are refused when it has many links already', async () => {
    const b = await world.node('b').start()
    const instance = '01'.repeat(16)
    const peers: RawPeer[] = []
    for (let link = 0; link < 4; link++) peers.push(await RawPeer.dial(world, b, 'a', { instance }))
    await assert.rejects(RawPeer.dial(world, b, 'a', { instance }), /a has 4 links to b already/)
    assert.deepEqual([b.connected(), peers.map(({ closed }) => closed)], [['a'], Array(4).fill(undefined)])
    for (const peer of peers) peer.close()
  })

  it('are known to be lost by a scan that begins after its link has closed', async () => {
    const [a, b] = await world.pair()
    const rows = a.remote(b).scanDocuments({ descending: false, body: false, leaves: false }, context)
    const pages = rows[Symbol.asyncIterator]()
    world.hub.kill(() => true)
    await world.settle()
    const { code, nothingDone } = await failure(pages.next())
    assert.deepEqual([code, nothingDone], ['unreachable', true])
  })
})
