import assert from 'node:assert/strict'
import { ManualClock, MemoryNetworkHub, SeededRandom } from '@sectional/runtime'
import { Dialer, parseAddress } from '../../src/link/dialer.ts'
import type { ConnectionEnd } from '../../src/link/dialer.ts'
import { defaultLimits } from '../../src/link/limits.ts'

const { backoffMinMs, backoffMaxMs, backoffAbsentMaxMs } = defaultLimits

describe('a dialer', () => {
  let clock: ManualClock
  let hub: MemoryNetworkHub
  let dialer: Dialer
  /** How the handshake of each connection ends. */
  let end: ConnectionEnd | undefined
  let wanted: boolean
  /** The times of connections, and of attempts without one. */
  let connections: number[]
  let failures: number[]

  beforeEach(() => {
    clock = new ManualClock()
    hub = new MemoryNetworkHub({ clock })
    wanted = true
    end = undefined
    connections = []
    failures = []
    dialer = new Dialer({
      address: 'b:1', network: hub.network('a'), clock, random: new SeededRandom(1), limits: defaultLimits,
      wanted: () => wanted,
      onConnection: (connection, done) => {
        connections.push(clock.monotonic())
        if (end === undefined) return
        connection.close('the handshake has failed')
        done(end)
      },
      onFailed: () => { failures.push(clock.monotonic()) },
    })
  })
  afterEach(() => dialer.stop())

  function listen(): Promise<{ close(): Promise<void> }> {
    return hub.network('b').listen({ host: 'b', port: 1 }, () => {})
  }

  function pauses(times: readonly number[]): readonly number[] {
    return times.slice(1).map((time, index) => time - times[index]!)
  }

  it('waits longer and longer for a node that refuses it, and briefly again once the node was away', async () => {
    const listener = await listen()
    end = { lifetimeMs: 0, refused: true }
    dialer.dial()
    await clock.advance(20 * backoffMaxMs)
    assert(Math.max(...pauses(connections)) > backoffMaxMs / 2)
    await listener.close()
    await clock.advance(2 * backoffMaxMs)
    assert(failures.length > 2)
    assert(Math.max(...pauses(failures)) <= backoffAbsentMaxMs + 1)
    connections = []
    await listen()
    await clock.advance(backoffAbsentMaxMs + 4 * backoffMinMs)
    assert(connections.length >= 2, 'it tries again soon')
  })

  it('has one pause at a time, and none while it is not wanted, dials or has stopped', async () => {
    await listen()
    wanted = false
    dialer.resume()
    assert.equal(clock.pendingTimers, 0)
    wanted = true
    for (let calls = 0; calls < 3; calls++) dialer.resume()
    assert.equal(clock.pendingTimers, 1)
    await clock.advance(backoffMinMs)
    assert.equal(connections.length, 1)
    dialer.resume()
    dialer.dial()
    await clock.advance(backoffMaxMs)
    assert.deepEqual([connections.length, clock.pendingTimers], [1, 0])
    await dialer.stop()
    dialer.resume()
    assert.equal(clock.pendingTimers, 0)
  })

  it('goes on dialing after a connection that was made during a pause has closed', async () => {
    await listen()
    end = { lifetimeMs: 0, refused: false }
    dialer.resume()
    assert.equal(clock.pendingTimers, 1)
    dialer.dial()
    await clock.advance(backoffAbsentMaxMs)
    assert(connections.length > 1, `it connected ${connections.length} times`)
  })
})

describe('addresses of nodes', () => {
  it('have a host and a port', () => {
    assert.deepEqual(parseAddress('b.example:5986'), { host: 'b.example', port: 5986 })
    assert.deepEqual(parseAddress('[::1]:65535'), { host: '::1', port: 65535 })
    for (const text of ['', 'b', 'b:', ':1', 'b:0', 'b:65536', '::1:5', '[x]:1', 'b:1x']) {
      assert.throws(() => parseAddress(text), /is not an address: write host:port/, text)
    }
  })
})
