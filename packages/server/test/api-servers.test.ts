import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import {
  MemoryHttpListener, MemoryLog, NodeHttpListener, type HttpAddress, type HttpExchange, type HttpHandler,
  type HttpListener, type HttpServer,
} from '@sectional/runtime'
import { expect } from 'chai'
import { ApiServers } from '../src/hosting/api-servers.ts'

const graceMs = 5_000

interface Fixture { readonly servers: ApiServers; readonly running: HttpExchange[]; readonly lost: Error[] }

/** Requests of `/slow` are kept in `running`, others are answered. */
function serversOf(http: HttpListener): Fixture {
  const [running, lost]: [HttpExchange[], Error[]] = [[], []]
  const servers = new ApiServers({
    http, graceMs, log: new MemoryLog(), endFeeds: () => {}, onLost: error => lost.push(error),
    handler: exchange => {
      if (exchange.target === '/slow') running.push(exchange)
      else exchange.send(200, {}, 'quick')
    },
  })
  return { servers, running, lost }
}

describe('servers of the API on sockets', () => {
  let listener: NodeHttpListener
  let fixture: Fixture
  let agent: Agent
  beforeEach(async () => {
    listener = new NodeHttpListener()
    agent = new Agent({ keepAlive: true })
    fixture = serversOf(listener)
    await fixture.servers.open([{ host: '127.0.0.1', port: 0 }])
  })
  afterEach(async () => {
    agent.destroy()
    await fixture.servers.close()
    listener.revoke()
  })

  const port = (): number => fixture.servers.addresses[0]!.port
  async function fetched(path: string, to: number, from: Agent | false = false): Promise<IncomingMessage> {
    const [response] = await once(get({ host: '127.0.0.1', port: to, path, agent: from }), 'response') as
      [IncomingMessage]
    response.resume()
    await once(response, 'end')
    return response
  }
  const refused = (to: number): Promise<unknown> => fetched('/', to).then(() => null, error => error.code)
  async function freePort(): Promise<number> {
    const probe = await listener.listen({ host: '127.0.0.1', port: 0 }, () => {})
    const { port: free } = probe.address
    await probe.close(0)
    return free
  }

  it('answer at the new address at once, close idle connections and finish running requests', async () => {
    const old = port()
    const free = await freePort()
    await fetched('/', old, agent)
    const [idle] = Object.values(agent.freeSockets)[0]!
    const slow = fetched('/slow', old)
    while (fixture.running.length === 0) await new Promise(setImmediate)
    const closed = once(idle!, 'close')
    await fixture.servers.move([{ host: '127.0.0.1', port: free }])
    expect(port()).to.equal(free)
    expect((await fetched('/', free)).statusCode).to.equal(200)
    expect(await refused(old)).to.equal('ECONNREFUSED')
    await closed
    fixture.running[0]!.send(200, {}, 'slow')
    expect((await slow).headers.connection).to.equal('close')
  })

  it('move to all addresses on the same port, and back', async () => {
    const same = port()
    for (const host of ['0.0.0.0', '127.0.0.1']) {
      await fixture.servers.move([{ host, port: same }])
      expect(fixture.servers.addresses).to.deep.equal([{ host, port: same }])
      expect((await fetched('/', same)).statusCode).to.equal(200)
    }
  })

  it('stay open when the new address is in use or not one of this machine', async () => {
    const same = port()
    const taken = await listener.listen({ host: '127.0.0.1', port: 0 }, () => {})
    const client = connect(same, '127.0.0.1')
    await once(client, 'connect')
    const wrong: readonly (readonly [HttpAddress, RegExp])[] = [
      [{ host: '127.0.0.1', port: taken.address.port }, /^127\.0\.0\.1:\d+ cannot be bound: .*EADDRINUSE/],
      [{ host: '203.0.113.7', port: same }, /^203\.0\.113\.7:\d+ cannot be bound: .*EADDRNOTAVAIL/],
    ]
    for (const [address, reason] of wrong) {
      expect(await fixture.servers.move([address]).catch((error: Error) => error.message)).to.match(reason)
      expect(fixture.servers.addresses).to.deep.equal([{ host: '127.0.0.1', port: same }])
      expect((await fetched('/', same)).statusCode).to.equal(200)
    }
    expect(client.readyState).to.equal('open')
    client.destroy()
    await taken.close(0)
  })
})

describe('servers of the API in memory', () => {
  /** Calls `before` at the beginning of each attempt to listen. */
  class WatchedListener extends MemoryHttpListener {
    before: (address: HttpAddress) => void | Promise<void> = () => {}

    override async listen(address: HttpAddress, handler: HttpHandler): Promise<HttpServer> {
      await this.before(address)
      return super.listen(address, handler)
    }
  }

  const here = { host: 'a', port: 1 }
  const answer = async (http: MemoryHttpListener, port: number): Promise<unknown> =>
    http.inject({ target: '/' }, port).then(({ status }) => status, error => error.message)

  it('return to the old address when the new one cannot be had without it', async () => {
    const http = new WatchedListener()
    const { servers, lost } = serversOf(http)
    await servers.open([here, { host: 'a', port: 2, encrypted: true }])
    http.before = ({ host, port }) => { if (host === 'b' && port === 2) throw inUse() }
    const moved = servers.move([{ host: 'b', port: 1 }, { host: 'b', port: 2, encrypted: true }])
    expect(await moved.catch((error: Error) => error.message)).to.equal('in use')
    expect(servers.addresses).to.deep.equal([{ ...here }, { host: 'a', port: 2, encrypted: true }])
    expect([await answer(http, 1), await answer(http, 2), lost]).to.deep.equal([200, 200, []])
    await servers.close()
    expect([await answer(http, 1), await answer(http, 2)]).to.deep.equal(['nobody listens', 'nobody listens'])
  })

  it('report that the old address is lost, too', async () => {
    const http = new WatchedListener()
    const { servers, lost } = serversOf(http)
    await servers.open([here])
    http.before = () => { throw inUse() }
    expect(await servers.move([{ host: 'b', port: 1 }]).catch((error: Error) => error.message)).to.equal('in use')
    expect(lost).to.have.length(1)
    await servers.close()
  })

  it('leave nothing open when they are closed during a move', async () => {
    const http = new WatchedListener()
    const { servers } = serversOf(http)
    await servers.open([here])
    const listening = Promise.withResolvers<void>()
    http.before = () => listening.promise
    const moved = servers.move([{ host: 'a', port: 2 }])
    const closed = servers.close()
    listening.resolve()
    await Promise.all([moved, closed])
    await servers.move([here])
    expect([await answer(http, 1), await answer(http, 2)]).to.deep.equal(['nobody listens', 'nobody listens'])
  })

  function inUse(): Error {
    return new Error('in use', { cause: Object.assign(new Error(), { code: 'EADDRINUSE' }) })
  }
})
