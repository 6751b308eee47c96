import assert from 'node:assert/strict'
import type { ReplicaError } from '@sectional/core'
import type { Network } from '@sectional/runtime'
import { DialingHandshake } from '../../src/link/handshake.ts'
import { handshakeType } from '../../src/schema/schema.ts'
import { context, failure, logged, shard, TestWorld, type TestNode } from '../test-node.ts'

const patience = { timeoutMs: 1000 }

describe('peer links', () => {
  let world: TestWorld
  beforeEach(() => { world = new TestWorld() })
  afterEach(async () => { assert.deepEqual(await world.stop(), { connections: 0, timers: 0 }) })

  it('open between every two nodes, whoever dials, and settle on one connection each', async () => {
    const nodes = ['a', 'b', 'c'].map(name => world.node(name))
    for (const node of nodes) await node.start(nodes)
    await world.settle()
    await world.clock.advance(10_000)
    for (const node of nodes) {
      assert.deepEqual(
        node.connected(), nodes.map(other => other.identity.node).filter(name => name !== node.identity.node),
      )
    }
    assert.equal(world.hub.openConnections, 3)
    assert.deepEqual(
      nodes.flatMap(node => node.log.messages('warn').filter(message => message.includes('handshake'))), [],
    )
  })

  it('settle on one connection when both dial at the same instant, and lose no call over it', async () => {
    world.hub.setFaults({ delayMs: () => 5 })
    const a = world.node('a')
    const b = world.node('b')
    await Promise.all([a.start(), b.start()])
    a.peers.setPeers([b.identity.address])
    b.peers.setPeers([a.identity.address])
    const outcomes: Promise<string>[] = []
    for (let step = 0; step < 40; step++) {
      await world.clock.advance(2)
      for (const [from, to] of [[a, b], [b, a]] as const) {
        if (from.connected().length > 0) {
          outcomes.push(from.peers.control(to.identity.node).status(context).then(() => 'ok', error => error.message))
        }
      }
    }
    await world.clock.advance(1000)
    assert(outcomes.length > 40)
    assert.deepEqual([...new Set(await Promise.all(outcomes))], ['ok'])
    assert.equal(world.hub.openConnections, 1)
    assert.deepEqual([...a.changes, ...b.changes], ['+b', '+a'])
    assert.deepEqual([...a.log.messages('warn'), ...b.log.messages('warn')], [])
  })

  it('open again by themselves after they broke', async () => {
    const [a, b] = await world.pair()
    world.hub.kill(() => true)
    await world.settle()
    assert.deepEqual(a.connected(), [])
    await world.clock.advance(100)
    assert.deepEqual(a.connected(), ['b'])
    assert.deepEqual(a.changes, ['+b', '-b', '+b'])
    assert.deepEqual(b.changes, ['+a', '-a', '+a'])
  })

  it('are retried for an unreachable node with pauses of at most backoffAbsentMaxMs', async () => {
    const a = world.node('a')
    const b = world.node('b')
    await a.start([b])
    await world.clock.advance(60_000)
    assert.equal(logged(a, 'warn', /cannot be reached/).length, 1)
    const attempts = a.log.lines.filter(line => line.message === 'a peer cannot be reached').length
    assert(attempts >= 60_000 / 1000 && attempts < 130, `${attempts} attempts`)
    await b.start()
    await world.clock.advance(1000)
    assert.deepEqual(a.connected(), ['b'])
  })

  it('log at once that an unreachable node cannot be reached for another reason', async () => {
    const a = world.node('a')
    const b = world.node('b')
    await a.start([b])
    await world.clock.advance(5000)
    world.hub.partition([['a'], ['b']])
    await world.clock.advance(20_000)
    const reasons = logged(a, 'warn', /cannot be reached/).map(({ fields }) => String(fields.reason))
    assert.equal(reasons.length, 2)
    assert.match(reasons[0]!, /nobody listens/)
    assert.match(reasons[1]!, /did not answer|cut off/)
  })

  for (const [what, before] of [
    ['went away again and again', { clusterId: 'c1', lives: 12, lifeMs: 1500 }],
    ['belonged to another cluster', { clusterId: 'c2', lives: 1, lifeMs: 21_000 }],
  ] as const) {
    it(`find a node soon that starts with an empty disk, although it ${what} before`, async () => {
      const a = world.node('a')
      let b = world.node('b', { clusterId: before.clusterId })
      await a.start([b])
      for (let life = 0; life < before.lives; life++) {
        if (life > 0) b = world.node('b', { clusterId: before.clusterId, seed: 500 + life })
        await b.start()
        await world.clock.advance(before.lifeMs)
        await b.peers.stop()
        await world.settle()
      }
      const emptied = world.node('b', { clusterId: null, seed: 700 })
      await emptied.start()
      await world.clock.advance(1100)
      assert.equal(a.peers.connected()[0]?.clusterId, null)
    })
  }

  it('close when the peer is silent, and fail its calls as unreachable', async () => {
    const [a] = await world.pair()
    world.hub.partition([['a'], ['b']])
    const call = failure(a.peers.control('b').status({ timeoutMs: 60_000 }))
    await world.clock.advance(6000)
    assert.equal((await call).code, 'unreachable')
    assert.deepEqual(a.connected(), [])
    world.hub.heal()
    await world.clock.advance(10_000)
    assert.deepEqual(a.connected(), ['b'])
  })

  it('stay open without calls', async () => {
    const [a, b] = await world.pair()
    await world.clock.advance(120_000)
    assert.deepEqual([...a.changes, ...b.changes], ['+b', '+a'])
  })

  it('fail their open calls: unreachable when the link breaks, closed when this node stops', async () => {
    const [a] = await world.pair()
    world.hub.setFaults({ delayMs: () => 50 })
    const broken = failure(a.peers.control('b').status(context))
    await world.settle()
    world.hub.kill(() => true)
    await world.settle()
    assert.equal((await broken).code, 'unreachable')
    world.hub.setFaults({})
    await world.clock.advance(200)
    world.hub.setFaults({ delayMs: () => 3000 })
    const closed = failure(a.peers.control('b').status(context))
    await world.settle()
    await Promise.all([a.peers.stop(), world.clock.advance(1500)])
    assert.equal((await closed).code, 'closed')
    assert.equal((await failure(a.peers.control('b').status(context))).code, 'closed')
    await world.clock.advance(10_000)
  })

  it('of a stopping node answer the calls that it has begun, and report each later call as not done', async () => {
    const [a, b] = await world.pair()
    const answered = Promise.withResolvers<never[]>()
    b.replica!.diffRevisions = () => answered.promise
    const begun = a.peers.replica('b', shard).diffRevisions([], context)
    const waiting = failure(a.peers.replica('b', shard).waitForChange({ history: 'h1', sequence: 0 }, context))
    await world.settle()
    world.hub.setFaults({ delayMs: () => 20 })
    const stopped = b.peers.stop()
    // This call is in transit when the node begins to stop.
    const late = failure(a.peers.replica('b', shard).diffRevisions([], context))
    await world.clock.advance(100)
    assert.deepEqual([(await late).code, (await late).nothingDone], ['unreachable', true])
    assert.equal((await waiting).code, 'unreachable')
    const refused = await failure(a.peers.replica('b', shard).diffRevisions([], context))
    assert.deepEqual([refused.code, refused.nothingDone], ['unreachable', true])
    answered.resolve([])
    assert.deepEqual(await world.during(begun), [])
    await world.during(stopped)
    assert.deepEqual(a.connected(), [])
  })

  it('of a stopping node answer the calls of each peer, also when another peer has made none', async () => {
    const [a, b] = await world.pair()
    const c = await world.node('c').start([b])
    await world.settle()
    assert.deepEqual(b.connected(), ['a', 'c'])
    const answered = Promise.withResolvers<never[]>()
    b.replica!.diffRevisions = () => answered.promise
    const begun = a.peers.replica('b', shard).diffRevisions([], context)
    await world.settle()
    const stopped = b.peers.stop()
    await world.clock.advance(100)
    answered.resolve([])
    assert.deepEqual(await world.during(begun), [])
    await world.during(stopped)
    assert.deepEqual([a.connected(), c.connected()], [[], []])
  })

  it('that open while a node stops refuse calls, and report them as not done', async () => {
    const [a, b] = await world.pair()
    const answered = Promise.withResolvers<never[]>()
    let served = 0
    b.replica!.diffRevisions = () => {
      served++
      return answered.promise
    }
    const begun = a.peers.replica('b', shard).diffRevisions([], context)
    await world.settle()
    world.hub.setFaults({ delayMs: () => 20 })
    const c = world.node('c')
    await c.start([b])
    await world.clock.advance(50)
    assert.deepEqual(c.connected(), [])
    const stopped = b.peers.stop()
    const refused = new Promise<ReplicaError>(resolve => {
      c.peers.onChange(() => { void failure(c.peers.replica('b', shard).diffRevisions([], context)).then(resolve) })
    })
    await world.clock.advance(200)
    const { code, nothingDone } = await refused
    assert.deepEqual([code, nothingDone, served], ['unreachable', true, 1])
    answered.resolve([])
    await world.during(begun)
    await world.during(stopped)
  })

  it('of a stopping node close after drainMs although a call was not answered', async () => {
    const [a, b] = await world.pair({ limits: { drainMs: 700 } })
    b.replica!.diffRevisions = () => new Promise(() => {})
    const begun = failure(a.peers.replica('b', shard).diffRevisions([], context))
    await world.settle()
    const startedMs = world.clock.monotonic()
    await world.during(b.peers.stop())
    assert(world.clock.monotonic() - startedMs < 800)
    const { code, nothingDone } = await begun
    assert.deepEqual([code, nothingDone], ['unreachable', false])
  })

  it('reject calls to nodes without a link as unreachable', async () => {
    const [a] = await world.pair()
    assert.equal((await failure(a.peers.control('nobody').status(context))).code, 'unreachable')
    a.peers.control('nobody')
      .sendRaft({ from: 'a', to: 'nobody', term: 1, type: 'vote-reply', granted: true, preVote: false })
    assert.equal(await a.metric('sectional_rpc_raft_dropped_total'), 1)
  })

  it('repeat the handshake for a new identity', async () => {
    const a = world.node('a', { clusterId: null })
    const b = world.node('b')
    await b.start([a])
    await a.start([b])
    await world.settle()
    await world.clock.advance(1000)
    a.peers.setIdentity({ ...a.identity, clusterId: 'c1' })
    await world.clock.advance(1000)
    assert.equal(b.peers.connected()[0]?.clusterId, 'c1')
    assert.equal(world.hub.openConnections, 1)
  })

  it('stay open when only the record of the same start changes, which the next handshake announces', async () => {
    const [a, b] = await world.pair()
    a.peers.setIdentity({ ...a.identity, start: { ids: ['b2', 'a1'], confirmed: 4 } })
    await world.clock.advance(1000)
    let changes = 0
    b.peers.onChange(() => { changes++ })
    a.peers.setIdentity({ ...a.identity, start: { ids: ['b2'], confirmed: 22 } })
    await world.clock.advance(1000)
    assert.equal(changes, 0)
    assert.equal(b.peers.connected()[0]?.start?.confirmed, 4)
    const c = world.node('c')
    await c.start([a])
    await world.clock.advance(1000)
    assert.deepEqual(c.peers.connected().find(({ node }) => node === 'a')?.start, { ids: ['b2'], confirmed: 22 })
  })

  it('close when their address is no longer that of a peer', async () => {
    const [a] = await world.pair()
    a.peers.setPeers([])
    await world.clock.advance(10_000)
    assert.deepEqual(a.connected(), [])
  })

  for (const [what, act] of [
    ['their peer is removed', node => { node.peers.setPeers([]) }],
    ['this node stops', node => node.peers.stop()],
  ] as readonly (readonly [string, (node: TestNode) => void | Promise<void>])[]) {
    it(`are not opened on a connection that opens while ${what}`, async () => {
      const network = world.hub.network('a')
      const gate = Promise.withResolvers<void>()
      const late: Network = {
        listen: network.listen.bind(network),
        connect: async (address, { timeoutMs }) => {
          const connection = await network.connect(address, { timeoutMs })
          await gate.promise
          return connection
        },
      }
      const b = await world.node('b').start()
      const a = await world.node('a', { network: late }).start([b])
      await world.settle()
      assert.equal(world.hub.openConnections, 1)
      const acted = act(a)
      gate.resolve()
      await world.settle()
      assert.equal(world.hub.openConnections, 0)
      assert.deepEqual([...a.changes, ...b.changes], [])
      await acted
    })
  }

  it('carry calls of both nodes after a node dialed again while the other end of its earlier link is still open',
    async () => {
      const [a, b] = await world.pair()
      const lingerMs = 60_000
      world.hub.sever('a', 'b', lingerMs)
      await world.clock.advance(1000)
      assert.deepEqual(a.connected(), ['b'])
      for (let time = 0; time < 3; time++) {
        for (const [from, to] of [[a, b], [b, a]] as const) {
          const { node } = await world.during(from.peers.control(to.identity.node).status(context))
          assert.equal(node, to.identity.node)
        }
      }
      await world.clock.advance(lingerMs)
    })

  it('are replaced by those of a restarted node, even if the old link was not yet found to be dead', async () => {
    const [a, b] = await world.pair()
    world.hub.partition([['a'], ['b']])
    const reborn = world.node('a', { network: world.hub.network('a2'), port: 2, seed: 1000 })
    await reborn.start([b])
    await world.clock.advance(1000)
    assert.deepEqual(b.changes, ['+a', '-a', '+a'])
    assert.equal(b.peers.connected()[0]?.address, 'a:2')
    world.hub.heal()
    await a.peers.stop()
  })

  it('are kept with a node that answers when a second process uses its name', async () => {
    const [a, b] = await world.pair()
    const twin = world.node('a', { network: world.hub.network('a2'), port: 2, seed: 1000 })
    await twin.start([b])
    for (let turn = 0; turn < 600; turn++) {
      await world.clock.advance(100)
      const call = b.peers.control('a').status(patience)
      await world.settle()
      assert.equal((await call).address, 'a:1')
    }
    assert.deepEqual([a.changes, b.changes, twin.changes], [['+b'], ['+a'], []])
    assert.match(
      twin.peers.rivalReason() ?? '', /a node named a is up at a:1: set another \[node\] name here, or stop that one/,
    )
    assert.equal(logged(twin, 'error', /another process has its name/).length, 1)
    assert(logged(twin, 'debug', /another process has its name/).length < 30)
    await a.peers.stop()
    await world.clock.advance(6000)
    assert.deepEqual(b.connected(), ['a'], 'the second process is the only one now')
    assert.equal(twin.peers.rivalReason(), null)
  })

  it('are kept with a node that answers when this node dials the second process itself', async () => {
    const [a, b] = await world.pair()
    const twin = world.node('a', { network: world.hub.network('a2'), port: 2, seed: 1000 })
    await twin.start([])
    b.peers.setPeers(['a:1', 'a:2'])
    for (let turn = 0; turn < 300; turn++) await world.clock.advance(100)
    assert.deepEqual([a.changes, b.changes, twin.changes], [['+b'], ['+a'], []])
    assert.equal(logged(b, 'warn', /handshake of a peer was refused/).length, 1)
  })

  /** Sends a handshake under a name, with a proof that is none. */
  async function claimName(node: string): Promise<void> {
    const connection = await world.hub.network('intruder').connect({ host: 'b', port: 1 }, { timeoutMs: 1000 })
    const identity = { node, address: 'x:1', clusterId: 'c1', instance: '00'.repeat(16) }
    const dialer = new DialingHandshake({ identity, secret: 'x'.repeat(40), nonce: Buffer.alloc(32, node) })
    connection.onFrame = () => connection.send(handshakeType.encode({ proof: { proof: Buffer.alloc(32) } }))
    connection.send(dialer.hello)
    await world.settle()
  }

  it('log one warning a minute for a host whose processes lack the secret, whatever names they claim', async () => {
    const b = world.node('b')
    await b.start([])
    for (let index = 0; index < 5; index++) await claimName(`invented${index}`)
    assert.equal(logged(b, 'warn', /handshake of a peer was refused/).length, 1)
    assert(logged(b, 'debug', /handshake of a peer was refused/).length >= 4)
  })

  it('let a node with an empty disk take a member\'s name only when the member was silent for silenceMs', async () => {
    const [, b] = await world.pair()
    world.hub.partition([['a'], ['b']])
    const emptied = world.node('a', { network: world.hub.network('a2'), port: 2, seed: 1000, clusterId: null })
    await emptied.start([b])
    await world.clock.advance(2500)
    assert.deepEqual(emptied.connected(), [])
    await world.clock.advance(6000)
    assert.deepEqual(emptied.connected(), ['b'])
    world.hub.heal()
  })

  it('give a member back its name at once when a node with an empty disk has it', async () => {
    const b = world.node('b')
    const emptied = world.node('a', { network: world.hub.network('a2'), port: 2, seed: 1000, clusterId: null })
    await b.start()
    await emptied.start([b])
    await world.settle()
    const a = world.node('a')
    await a.start([b])
    await world.settle()
    assert.equal(b.peers.connected()[0]?.address, 'a:1')
    await world.clock.advance(20_000)
    assert.deepEqual([a.changes, b.changes], [['+b'], ['+a', '-a', '+a']])
  })

  it('report the peers that were not tried yet, neither linked nor found unreachable', async () => {
    const a = world.node('a')
    const b = world.node('b')
    await b.start()
    await a.start([b])
    a.peers.setPeers(['b:1', 'c:1', 'd:1'])
    world.hub.pause('d')
    assert.deepEqual(a.peers.untried(), ['b:1', 'c:1', 'd:1'])
    await world.settle()
    assert.deepEqual(a.peers.untried(), ['d:1'])
    await world.clock.advance(3000)
    assert.deepEqual(a.peers.untried(), [])
    world.hub.resume('d')
  })

  it('are not opened by a node to itself', async () => {
    const a = world.node('a')
    await a.start()
    a.peers.setPeers(['a:1', 'localhost:1'])
    await world.clock.advance(20_000)
    assert.deepEqual(a.connected(), [])
  })
})

describe('strangers', () => {
  let world: TestWorld
  beforeEach(() => { world = new TestWorld() })
  afterEach(async () => { assert.deepEqual(await world.stop(), { connections: 0, timers: 0 }) })

  it('with a wrong secret get no link, and both logs say why without the secret', async () => {
    const wrong = 'w'.repeat(40)
    const a = world.node('a', { secret: wrong })
    const b = world.node('b')
    await b.start()
    await a.start([b])
    await world.clock.advance(1000)
    assert.deepEqual([...a.connected(), ...b.connected()], [])
    assert.equal(logged(a, 'warn', /cluster secrets differ/).length, 1)
    assert.equal(logged(b, 'warn', /cluster secrets differ/).length, 1)
    assert(!JSON.stringify([a.log.lines, b.log.lines]).includes(wrong))
  })

  it('of another cluster get no link, and both logs name the clusters', async () => {
    const a = world.node('a', { clusterId: 'c2' })
    const b = world.node('b')
    await b.start()
    await a.start([b])
    await world.clock.advance(1000)
    assert.deepEqual([...a.connected(), ...b.connected()], [])
    for (const node of [a, b]) {
      assert.equal(logged(node, 'warn', /cluster c1.*cluster c2|cluster c2.*cluster c1/).length, 1)
    }
  })

  it('that send nothing are disconnected after the handshake timeout', async () => {
    const b = await world.node('b').start()
    const silent = await world.hub.network('x').connect({ host: 'b', port: 1 }, patience)
    let closed = ''
    silent.onFrame = () => {}
    silent.onClose = reason => { closed = reason }
    await world.clock.advance(6000)
    assert.match(closed, /handshake was not complete/)
    assert.equal(logged(b, 'warn', /handshake was not complete/).length, 1)
  })

  it('are limited in number until they have proven themselves', async () => {
    const b = await world.node('b', { limits: { maxUnauthenticated: 3 } }).start()
    const closed: number[] = []
    const connect = async (from: number, to: number): Promise<void> => {
      for (let i = from; i < to; i++) {
        const connection = await world.hub.network('x').connect({ host: 'b', port: 1 }, patience)
        connection.onFrame = () => {}
        connection.onClose = () => { closed.push(i) }
      }
      await world.settle()
    }
    await connect(0, 5)
    assert.deepEqual(closed, [0, 1], 'the oldest ones are closed')
    const peers = [world.node('a'), world.node('c'), world.node('d')]
    for (const peer of peers) await peer.start([b])
    await world.settle()
    assert.deepEqual(b.connected(), ['a', 'c', 'd'], 'the others do not keep a peer away')
    await connect(5, 10)
    assert.deepEqual(closed, [0, 1, 2, 3, 4, 5, 6], 'those that have proven themselves do not count')
    assert.deepEqual(b.connected(), ['a', 'c', 'd'])
  })

  it('that send garbage or a huge frame are refused with a reason and disconnected', async () => {
    const b = await world.node('b').start()
    for (const garbage of [Buffer.from('GET / HTTP/1.1\r\n'), Buffer.alloc(100_000), Buffer.alloc(0)]) {
      const connection = await world.hub.network('x').connect({ host: 'b', port: 1 }, patience)
      let closed = ''
      const frames: Uint8Array[] = []
      connection.onFrame = frame => { frames.push(frame) }
      connection.onClose = reason => { closed = reason }
      connection.send(garbage)
      await world.settle()
      assert.match(closed, /handshake/)
      for (const frame of frames) assert(handshakeType.decode(frame).refused)
    }
    assert(logged(b, 'warn', /handshake/).length >= 1)
  })

  it('are disconnected when they send much before they have proven themselves', async () => {
    const b = await world.node('b').start()
    const connection = await world.hub.network('x').connect({ host: 'b', port: 1 }, patience)
    let closed = ''
    connection.onFrame = () => {}
    connection.onClose = reason => { closed = reason }
    connection.send(Buffer.alloc(200_000))
    await world.settle()
    assert.match(closed, /more bytes arrived than are allowed/)
    const a = await world.node('a').start([b])
    await world.settle()
    assert.deepEqual(a.connected(), ['b'])
  })

  it('that were not admitted may call status and join, and nothing else', async () => {
    const guest = world.node('guest', { clusterId: null })
    const member = world.node('member')
    await member.start()
    await guest.start([member])
    await world.settle()
    const control = guest.peers.control('member')
    assert.equal((await control.status(context)).node, 'member')
    assert.deepEqual(await control.join({ node: 'guest', address: 'guest:1', zone: null }, context), {
      kind: 'admitted', clusterId: 'c1',
    })
    assert.equal((await failure(control.propose({}, context))).code, 'protocol')
    assert.equal((await failure(control.ask({ question: 'stats', argument: null }, context))).code, 'protocol')
    assert.equal((await failure(guest.remote(member).upkeep.replicaInfo(context))).code, 'protocol')
    control.sendRaft({ from: 'guest', to: 'member', term: 1, type: 'vote-reply', granted: true, preVote: false })
    await world.settle()
    assert.deepEqual(member.raft, [])
    assert.equal((await member.peers.control('guest').status(context)).node, 'guest')
  })
})
