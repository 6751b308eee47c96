import { expect } from 'chai'
import { ManualClock } from '../../src/clock/clock-manual.ts'
import { MemoryNetworkHub } from '../../src/network/network-memory.ts'
import type { MemoryNetwork } from '../../src/network/network-memory.ts'
import type { Connection } from '../../src/network/network.ts'
import { networkSuite } from '../../src/network/network-suite.ts'

networkSuite('MemoryNetwork', {
  create: async maxFrameBytes => {
    const hub = new MemoryNetworkHub({ maxFrameBytes })
    return { a: hub.network('a'), b: hub.network('b') }
  },
  destroy: async ({ a, b }) => {
    (a as MemoryNetwork).revoke();
    (b as MemoryNetwork).revoke()
  },
})

describe('MemoryNetworkHub', () => {
  const address = { host: 'a', port: 5986 }
  let clock: ManualClock
  let hub: MemoryNetworkHub
  let heard: string[]
  beforeEach(() => {
    clock = new ManualClock()
    hub = new MemoryNetworkHub({ clock })
    heard = []
  })

  async function link(): Promise<Connection> {
    await hub.network('a').listen(address, connection => {
      connection.onFrame = frame => heard.push(`${clock.monotonic()}:${Buffer.from(frame)}`)
      connection.onClose = reason => heard.push(`${clock.monotonic()}:closed, ${reason}`)
    })
    return await hub.network('b').connect(address, { timeoutMs: 1000 })
  }

  it('delivers after the delay, in order though a later delay is shorter', async () => {
    const connection = await link()
    const delays = [10, 4, 20]
    hub.setFaults({ delayMs: () => delays.shift() ?? 0 })
    for (const text of ['x', 'y', 'z']) connection.send(Buffer.from(text))
    await clock.advance(9)
    expect(heard).to.deep.equal([])
    await clock.advance(100)
    expect(heard).to.deep.equal(['10:x', '10:y', '20:z'])
    expect(clock.pendingTimers).to.equal(0)
  })

  it('holds frames during a partition, and delivers them when it heals', async () => {
    const connection = await link()
    hub.partition([['a'], ['b', 'c']])
    connection.send(Buffer.from('x'))
    connection.close('bye')
    await clock.advance(100)
    expect(heard).to.deep.equal([])
    hub.heal()
    await clock.advance(1)
    expect(heard).to.deep.equal(['100:x', '100:closed, bye'])
    expect(hub.openConnections).to.equal(0)
  })

  it('lets attempts across a partition time out, and leaves other pairs alone', async () => {
    await link()
    hub.partition([['a'], ['b']])
    const attempt = hub.network('b').connect(address, { timeoutMs: 50 }).catch(error => error.message)
    const other = await hub.network('c').connect(address, { timeoutMs: 50 })
    await clock.advance(50)
    expect(await attempt).to.equal('a:5986 did not answer within 50 ms')
    other.send(Buffer.from('from c'))
    await clock.advance(1)
    expect(heard).to.deep.equal(['50:from c'])
  })

  it('cuts one direction alone, and lets no attempt through either way', async () => {
    const connection = await link()
    hub.cut('b', 'a')
    connection.send(Buffer.from('x'))
    await clock.advance(10)
    expect(heard).to.deep.equal([])
    const refused = hub.network('b').connect(address, { timeoutMs: 50 }).catch(error => error.message)
    await clock.advance(50)
    expect(await refused).to.equal('a:5986 did not answer within 50 ms')
    hub.heal()
    await clock.advance(1)
    expect(heard).to.deep.equal(['60:x'])
  })

  it('delivers frames and ends to a paused node when it is resumed, and lets connecting to it time out', async () => {
    const connection = await link()
    hub.pause('a')
    connection.send(Buffer.from('x'))
    await clock.advance(10)
    hub.kill((from, to) => from === 'b' && to === 'a')
    const attempt = hub.network('b').connect(address, { timeoutMs: 50 }).catch(error => error.message)
    await clock.advance(60)
    expect(heard).to.deep.equal([])
    expect(await attempt).to.equal('a:5986 did not answer within 50 ms')
    const second = await hub.network('c').connect({ host: 'd', port: 1 }, { timeoutMs: 1 })
      .catch(error => error.message)
    expect(second).to.equal('nobody listens at d:1')
    hub.resume('a')
    await clock.advance(1)
    expect(heard).to.deep.equal(['70:closed, connection reset (simulated)'])
  })

  it('takes the delay of each direction to connect', async () => {
    await link()
    hub.setFaults({ delayMs: () => 5 })
    let openedAt: number | undefined
    void hub.network('b').connect(address, { timeoutMs: 1000 }).then(() => { openedAt = clock.monotonic() })
    await clock.advance(100)
    expect(openedAt).to.equal(10)
  })

  it('closes a connection that the other end has accepted when its attempt is given up', async () => {
    await link()
    hub.setFaults({ delayMs: () => 40 })
    const attempt = hub.network('b').connect(address, { timeoutMs: 50 }).catch(error => error.message)
    await clock.advance(200)
    expect(await attempt).to.equal('a:5986 did not answer within 50 ms')
    expect(heard).to.deep.equal(['90:closed, the attempt was given up'])
  })

  it('kills connections by the names of their nodes, or at a frame', async () => {
    const first = await link()
    const reasons: string[] = []
    first.onClose = reason => reasons.push(reason)
    first.send(Buffer.from('lost'))
    hub.kill((from, to) => from === 'b' && to === 'a')
    await clock.advance(1)
    const second = await hub.network('b').connect(address, { timeoutMs: 50 })
    second.onClose = reason => reasons.push(reason)
    hub.setFaults({ killOnFrame: () => true })
    second.send(Buffer.from('lost too'))
    await clock.advance(1)
    expect(reasons).to.deep.equal(Array(2).fill('connection reset (simulated)'))
    expect(heard.filter(line => line.includes('lost'))).to.deep.equal([])
  })

  it('severs one end alone: the other one is reset later, and loses the frames that it sends until then', async () => {
    const near = await link()
    const reasons: string[] = []
    near.onClose = reason => reasons.push(reason)
    hub.sever('b', 'a', 30)
    await clock.advance(1)
    expect(reasons).to.deep.equal(['connection reset (simulated)'])
    expect(heard).to.deep.equal([])
    expect(hub.openEnds).to.deep.equal(['a > b'])
    await clock.advance(30)
    expect(heard).to.deep.equal(['30:closed, connection reset (simulated)'])
    expect(hub.openEnds).to.deep.equal([])
  })

  it('ends all connections and listeners of a revoked node, without callbacks at its own side', async () => {
    await hub.network('a').listen(address, connection => { connection.onClose = reason => heard.push(reason) })
    const network = hub.network('b')
    const connection = await network.connect(address, { timeoutMs: 1000 })
    connection.onClose = () => heard.push('own side')
    await network.listen({ host: 'b', port: 1 }, () => {})
    network.revoke()
    await clock.advance(1)
    expect(heard).to.deep.equal(['the process at the other end is gone'])
    await hub.network('b').listen({ host: 'b', port: 1 }, () => {})
    const refused = await network.connect(address, { timeoutMs: 1 }).catch(error => error.message)
    expect(refused).to.equal('the network was revoked')
  })
})
