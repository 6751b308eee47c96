import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { expect } from 'chai'
import { PendingHandshakes } from '../../src/tls/pending-handshakes.ts'

/** Without an address the client has gone before the connection was accepted. */
class FakeSocket extends EventEmitter {
  readonly localAddress = '127.0.0.1'
  readonly localPort = 6984
  readonly remoteAddress: string | undefined
  readonly remotePort: number | undefined
  isDestroyed = false

  constructor(remoteAddress?: string, remotePort?: number) {
    super()
    this.remoteAddress = remoteAddress
    this.remotePort = remotePort
  }

  /** Like a socket, it tells of its end later. */
  destroy(): void {
    this.isDestroyed = true
  }
}

describe('PendingHandshakes', () => {
  const socket = (address?: string, port?: number): FakeSocket & Socket =>
    new FakeSocket(address, port) as unknown as FakeSocket & Socket

  it('closes connections whose clients have gone already, and does not count them', () => {
    const handshakes = new PendingHandshakes(2)
    const gone = Array.from({ length: 10 }, () => socket())
    for (const one of gone) handshakes.begin(one)
    for (const one of gone) one.emit('close')
    expect(gone.every(({ isDestroyed }) => isDestroyed)).to.equal(true)
    expect(handshakes.count).to.equal(0)
    const next = socket('10.0.0.1', 1)
    handshakes.begin(next)
    expect([handshakes.count, next.isDestroyed]).to.deep.equal([1, false])
  })

  it('closes those of the IPv6 network with the most first, and tells its addresses apart', () => {
    const handshakes = new PendingHandshakes(3)
    const other = socket('2001:db8:0:1::1', 1)
    const ofNetwork = [1, 2, 3].map(host => socket(`2001:db8::${host}`, 1))
    for (const one of [other, ...ofNetwork]) handshakes.begin(one)
    expect([other, ...ofNetwork].map(({ isDestroyed }) => isDestroyed)).to.deep.equal([false, true, false, false])
    handshakes.done(ofNetwork[1]!)
    expect(handshakes.count).to.equal(2)
  })

  it('counts one of two connections with the same addresses and ports', () => {
    const handshakes = new PendingHandshakes(2)
    const [first, second] = [socket('10.0.0.1', 1), socket('10.0.0.1', 1)]
    handshakes.begin(first)
    handshakes.begin(second)
    expect(handshakes.count).to.equal(1)
    first.emit('close')
    expect(handshakes.count).to.equal(1)
    second.emit('close')
    expect(handshakes.count).to.equal(0)
  })

  it('closes the oldest connection of the address with the most', () => {
    const handshakes = new PendingHandshakes(3)
    const sockets = [socket('10.0.0.1', 1), socket('10.0.0.2', 1), socket('10.0.0.2', 2), socket('10.0.0.3', 1)]
    for (const one of sockets) handshakes.begin(one)
    expect(sockets.map(({ isDestroyed }) => isDestroyed)).to.deep.equal([false, true, false, false])
    handshakes.done(sockets[0]!)
    expect(handshakes.count).to.equal(2)
  })
})
