import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { NodeHttpClient } from '../../src/http/http-client-node.ts'
import { httpClientSuite } from '../../src/http/http-client-suite.ts'
import { testAuthority } from '../../src/tls/test-certificates.ts'

const servers: Server[] = []

async function listen(server: Server): Promise<number> {
  servers.push(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

async function start(listener: RequestListener): Promise<string> {
  return `http://127.0.0.1:${await listen(createServer(listener))}/`
}

async function stopServers(): Promise<void> {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
}

httpClientSuite('NodeHttpClient', {
  create: async () => new NodeHttpClient(),
  serve: async (_client, answer) => {
    const other = await start((_request, response) => { response.end('followed') })
    return start((_request, response) => {
      if (answer !== undefined) response.writeHead(answer.status, { Location: other }).end(answer.body)
    })
  },
  unused: async () => {
    const url = await start(() => {})
    await stopServers()
    return url
  },
  destroy: async client => {
    (client as NodeHttpClient).revoke()
    await stopServers()
  },
})

describe('NodeHttpClient', () => {
  const limits = { timeoutMs: 5000, bytesMax: 1000 }
  afterEach(stopServers)

  const failure = (get: Promise<unknown>): Promise<string> =>
    get.then(() => 'no failure', (error: Error) => `${error.name}: ${error.message}`)

  it('limits the time of the whole answer, not of its parts', async () => {
    const url = await start((_request, response) => {
      const timer = setInterval(() => { response.write('x') }, 10)
      response.on('close', () => { clearInterval(timer) })
    })
    expect(await failure(new NodeHttpClient().get(url, { ...limits, timeoutMs: 200 })))
      .to.equal('HttpFetchError: no answer after 200 ms')
  })

  it('fails when the connection breaks in the middle of the body', async () => {
    const url = await start((_request, response) => {
      response.writeHead(200, { 'Content-Length': 100 })
      response.write('half', () => { response.destroy() })
    })
    expect(await failure(new NodeHttpClient().get(url, limits))).to.match(/^HttpFetchError: /)
  })

  it('fails when the server changes to another protocol', async () => {
    const url = await start((request, response) => {
      request.socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: example\r\n\r\n')
      response.on('error', () => {})
    })
    expect(await failure(new NodeHttpClient().get(url, limits)))
      .to.equal('HttpFetchError: the connection closed without an answer')
  })

  it('ends running requests when it is revoked', async () => {
    const client = new NodeHttpClient()
    const arrived = Promise.withResolvers<void>()
    const url = await start(() => { arrived.resolve() })
    const get = failure(client.get(url, limits))
    await arrived.promise
    client.revoke()
    expect(await get).to.match(/^HttpFetchError: /)
  })

  it('trusts no certificate that no known authority has signed', async () => {
    const { key, cert } = testAuthority('unknown').identity
    const port = await listen(createTlsServer({ key, cert }, (_request, response) => { response.end('{}') }))
    expect(await failure(new NodeHttpClient().get(`https://127.0.0.1:${port}/`, limits)))
      .to.match(/^HttpFetchError: .*(CERT|SIGNATURE|ISSUER)/)
  })
})
