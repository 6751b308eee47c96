import { once } from 'node:events'
import { connect as connectTcp, createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { WebSocket } from 'ws'
import type { Connection, RefusedCaller } from '../../src/network/network.ts'
import { networkSuite } from '../../src/network/network-suite.ts'
import { WebSocketNetwork } from '../../src/network/network-ws.ts'
import { fixedTlsContext } from '../../src/tls/tls-context.ts'
import { testAuthority, type TestIdentity } from '../../src/tls/test-certificates.ts'

const create = (options: object) => async (maxFrameBytes: number) => ({
  a: new WebSocketNetwork({ ...options, maxFrameBytes }), b: new WebSocketNetwork({ ...options, maxFrameBytes }),
})
const destroy = async ({ a, b }: { a: unknown; b: unknown }): Promise<void> => {
  (a as WebSocketNetwork).revoke();
  (b as WebSocketNetwork).revoke()
}
const anyPort = { host: '127.0.0.1', port: 0 }

networkSuite('WebSocketNetwork', { create: create({}), destroy })
networkSuite('WebSocketNetwork with TLS', {
  create: create({ tls: fixedTlsContext(testAuthority('cluster').identity) }), destroy,
})

describe('WebSocketNetwork', () => {
  let network: WebSocketNetwork
  beforeEach(() => { network = new WebSocketNetwork() })
  afterEach(() => network.revoke())

  it('gives up on a peer that accepts and does not answer', async () => {
    const mute = createServer().listen(0, '127.0.0.1')
    await once(mute, 'listening')
    const address = { host: '127.0.0.1', port: (mute.address() as AddressInfo).port }
    const error: Error = await network.connect(address, { timeoutMs: 20 }).catch(error => error)
    expect(error.message).to.equal(`127.0.0.1:${address.port} did not answer within 20 ms`)
    mute.close()
  })

  it('answers plain HTTP with 426 and survives garbage', async () => {
    const listener = await network.listen(anyPort, () => {})
    const response = await fetch(`http://127.0.0.1:${listener.address.port}/`)
    expect(response.status).to.equal(426)
    const socket = connectTcp(listener.address.port, '127.0.0.1')
    socket.end('\u0000\u0001 garbage\r\n\r\n')
    socket.resume()
    await once(socket, 'close')
    const reachable = await network.connect(listener.address, { timeoutMs: 1000 })
    reachable.close('enough')
  })

  it('closes on a text frame', async () => {
    const accepted = Promise.withResolvers<Connection>()
    const listener = await network.listen(anyPort, accepted.resolve)
    const socket = new WebSocket(`ws://127.0.0.1:${listener.address.port}/sectional`)
    await once(socket, 'open')
    const connection = await accepted.promise
    const reason = new Promise(resolve => { connection.onClose = resolve })
    connection.onFrame = () => expect.fail('a text frame was delivered')
    socket.send('text')
    expect((await once(socket, 'close'))[0]).to.equal(1003)
    expect(await reason).to.equal('the peer sent a text frame')
  })

  it('says whose certificate was refused, and why', async () => {
    const [ours, theirs] = ['cluster', 'stranger'].map(name => testAuthority(name).identity)
    const expired = testAuthority('cluster').issue({ notAfter: '20250101000000' })
    const reach = async (from: TestIdentity, to: TestIdentity): Promise<string> => {
      const [caller, called] = [from, to].map(tls => new WebSocketNetwork({ tls: fixedTlsContext(tls) }))
      const { address } = await called!.listen(anyPort, () => {})
      const reason = await caller!.connect(address, { timeoutMs: 5000 })
        .then(() => 'connected', (error: Error) => error.message)
      for (const used of [caller!, called!]) used.revoke()
      return reason
    }
    expect(await reach(ours!, { ...theirs!, ca: ours!.ca })).to.match(
      /cannot be reached: no authority in cluster\/tls_ca_file of this node has signed its certificate$/,
    )
    expect(await reach(ours!, expired)).to.match(/its certificate, .* has expired or is not valid yet$/)
    for (const refused of [{ ...theirs!, ca: ours!.ca }, expired]) {
      expect(await reach(refused, ours!)).to.match(/If this repeats, it refuses the certificate of this node/)
    }
  })

  it('refuses a peer whose certificate another authority signed, or that has none', async () => {
    const secure = new WebSocketNetwork({ tls: fixedTlsContext(testAuthority('cluster').identity) })
    const { ca } = testAuthority('cluster').identity
    const stranger = new WebSocketNetwork({ tls: fixedTlsContext({ ...testAuthority('stranger').identity, ca }) })
    const distrustful = new WebSocketNetwork({ tls: fixedTlsContext(testAuthority('stranger').identity) })
    const accepted: unknown[] = []
    const refused: RefusedCaller[] = []
    const listener = await secure.listen(
      anyPort, connection => accepted.push(connection), caller => { refused.push(caller) },
    )
    for (const caller of [stranger, distrustful, network]) {
      const error: Error = await caller.connect(listener.address, { timeoutMs: 2000 })
        .then(() => new Error('connected'), error => error)
      expect(error.message).to.match(/cannot be reached/)
    }
    const withoutCertificate = new WebSocket(`wss://127.0.0.1:${listener.address.port}/sectional`, {
      ca,
    })
    const [failure] = await once(withoutCertificate, 'error')
    expect(failure).to.be.instanceOf(Error)
    expect(accepted).to.have.length(0)
    expect(refused.map(({ cause, reason }) => `${cause}: ${reason.split(';', 1)[0]}`)).to.deep.equal([
      'certificate: no authority in cluster/tls_ca_file of this node has signed its certificate',
      'garbage: it does not speak TLS as this node does (ERR_SSL_HTTP_REQUEST)', 'certificate: it has no certificate',
    ])
    secure.revoke()
    stranger.revoke()
    distrustful.revoke()
  })

  for (const tls of [undefined, fixedTlsContext(testAuthority('cluster').identity)]) {
    it(`accepts a peer while others hold connections and send nothing${tls ? ', with TLS' : ''}`, async () => {
      const busy = new WebSocketNetwork({ ...tls && { tls } })
      const { address } = await busy.listen(anyPort, () => {})
      const silent = Array.from({ length: 1100 }, () => connectTcp(address.port, address.host).on('error', () => {}))
      await Promise.all(silent.slice(-100).map(socket => once(socket, 'connect')))
      const peer = await busy.connect(address, { timeoutMs: 5000 })
      peer.close('enough')
      for (const socket of silent) socket.destroy()
      busy.revoke()
    })
  }

  it('says which end speaks TLS when the other does not', async () => {
    const secure = new WebSocketNetwork({ tls: fixedTlsContext(testAuthority('cluster').identity) })
    const reach = async (from: WebSocketNetwork, to: WebSocketNetwork): Promise<string> => {
      const listener = await to.listen(anyPort, () => {})
      return from.connect(listener.address, { timeoutMs: 5000 })
        .then(() => 'connected', (error: Error) => error.message)
    }
    expect(await reach(network, secure)).to.match(
      /that node speaks TLS and this one does not; cluster\/tls_key_file must be set/,
    )
    expect(await reach(secure, network)).to.match(/this node speaks TLS and that one does not/)
    const closing = createServer(socket => socket.destroy()).listen(0, '127.0.0.1')
    await once(closing, 'listening')
    const port = (closing.address() as AddressInfo).port
    const cut: Error = await network.connect({ host: '127.0.0.1', port }, { timeoutMs: 5000 }).catch(error => error)
    expect(cut.message).to.match(/cannot be reached/).and.not.match(/TLS/)
    closing.close()
    secure.revoke()
  })

  it('calls no callbacks at its own end after a revocation, and closes at the other end', async () => {
    const other = new WebSocketNetwork()
    const heard: string[] = []
    const closed = new Promise<void>(resolve => {
      void other.listen(anyPort, connection => { connection.onClose = () => resolve() }).then(async listener => {
        const connection = await network.connect(listener.address, { timeoutMs: 1000 })
        connection.onClose = reason => heard.push(reason)
        network.revoke()
      })
    })
    await closed
    other.revoke()
    expect(heard).to.deep.equal([])
    const refused: Error = await network.connect({ host: '127.0.0.1', port: 1 }, { timeoutMs: 100 })
      .catch(error => error)
    expect(refused.message).to.equal('the network was revoked')
  })
})
