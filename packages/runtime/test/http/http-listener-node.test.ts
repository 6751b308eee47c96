import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'chai'
import { ClientGoneError } from '../../src/http/http-listener.ts'
import type { HttpExchange, HttpServer } from '../../src/http/http-listener.ts'
import { connectionLimits } from '../../src/http/connections.ts'
import { NodeHttpListener } from '../../src/http/http-listener-node.ts'
import type { NodeHttpListenerOptions } from '../../src/http/http-listener-node.ts'
import { fixedTlsContext } from '../../src/tls/tls-context.ts'
import { testAuthority } from '../../src/tls/test-certificates.ts'
import { httpListenerSuite } from '../../src/http/http-listener-suite.ts'
import type { ClientRequest, ClientResponse } from '../../src/http/http-listener-suite.ts'

httpListenerSuite('NodeHttpListener', {
  create: async () => new NodeHttpListener(),
  request: async (_listener, server, request) => sendRequest(httpRequest, server, request),
  destroy: async listener => (listener as NodeHttpListener).revoke(),
})

const { identity } = testAuthority('https')

httpListenerSuite('NodeHttpListener with TLS', {
  encrypted: true,
  create: async () => new NodeHttpListener({
    https: { context: fixedTlsContext(identity), clientCertificates: 'ignored' },
  }),
  request: async (_listener, server, request) => sendRequest(httpsRequest, server, request),
  destroy: async listener => (listener as NodeHttpListener).revoke(),
})

function sendRequest(
  request: typeof httpsRequest, server: HttpServer,
  { method, target, headers = {}, body, signal, onChunk }: ClientRequest,
): Promise<ClientResponse> {
  return new Promise((resolve, reject) => {
    const { host, port } = server.address
    const options = { host, port, method, path: target, headers, agent: false as const, ca: identity.ca }
    const outgoing = request({ ...options, ...signal && { signal } }, response => {
      const parts: Buffer[] = []
      response.on('data', part => { parts.push(part); onChunk?.() })
      response.on('error', () => {})
      response.on('close', () => resolve({
        status: response.statusCode as number, headers: response.headers, body: Buffer.concat(parts).toString(),
        truncated: !response.complete,
      }))
    })
    outgoing.on('error', reject)
    if (typeof body === 'string') outgoing.setHeader('Content-Length', Buffer.byteLength(body))
    for (const chunk of typeof body === 'string' ? [body] : body ?? []) outgoing.write(chunk)
    outgoing.end()
  })
}

describe('NodeHttpListener', () => {
  let listener: NodeHttpListener
  beforeEach(() => { listener = new NodeHttpListener() })
  afterEach(() => listener.revoke())

  /** Sends the given bytes on one socket and returns what is received until it closes. */
  async function exchangeBytes(
    server: HttpServer, bytes: string, onData: (received: string, write: (more: string) => void) => void = () => {},
  ): Promise<string> {
    const socket = connect(server.address.port, server.address.host)
    let received = ''
    socket.on('data', data => { received += data; onData(received, more => socket.write(more)) })
    socket.write(bytes)
    await once(socket, 'close')
    return received
  }

  it('needs little more memory than the bytes of a body, however short the pieces are', async () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const count = 200_000
    const arrived = Promise.withResolvers<void>()
    let bytes = 0
    const server = await listener.listen({ host: '127.0.0.1', port: 0 }, async exchange => {
      const body = await exchange.readBody(2 * count, more => { if ((bytes += more) === count) arrived.resolve() })
      exchange.send(200, {}, String(body.length))
    })
    const socket = connect(server.address.port, server.address.host)
    let received = ''
    socket.on('data', data => { received += data })
    const pieces = '1\r\nx\r\n'.repeat(count)
    collect()
    const before = process.memoryUsage()
    socket.write('POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n')
    socket.write(pieces)
    await arrived.promise
    collect()
    const after = process.memoryUsage()
    expect(after.heapUsed + after.external - before.heapUsed - before.external).to.be.below(50 * count)
    socket.write('0\r\n\r\n')
    await once(socket, 'close')
    expect(received).to.match(new RegExp(`^HTTP/1.1 200 [^]*${count}$`))
  })

  /** Runs `ask`, which makes one request; resolves when the handler has finished with it. */
  async function handled(
    handler: (exchange: HttpExchange) => Promise<void>, ask: (server: HttpServer) => void,
  ): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    ask(await listener.listen({ host: '127.0.0.1', port: 0 }, exchange => { handler(exchange).then(resolve, reject) }))
    await promise
  }

  const asked = 'PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nsome of it'

  it('shows all values of a header that may be sent once', async () => {
    let seen: unknown[] = []
    const server = await listener.listen({ host: '127.0.0.1', port: 0 }, exchange => {
      seen = [exchange.headers['authorization'], exchange.headers['host']]
      exchange.send(200, {}, '')
    })
    const lines = ['Host: a', 'Authorization: one', 'authorization: two', 'Host: b', 'Connection: close', '', '']
    await exchangeBytes(server, ['GET / HTTP/1.1', ...lines].join('\r\n'))
    expect(seen).to.deep.equal(['one, two', 'a, b'])
    await server.close(0)
  })

  it('reports that the client has gone, whenever the body is read', async () => {
    await handled(async exchange => {
      await new Promise(resolve => exchange.signal.addEventListener('abort', resolve))
      const failure: unknown = await exchange.readBody(1000).catch((error: unknown) => error)
      expect(failure).to.be.instanceOf(ClientGoneError)
    }, server => {
      const socket = connect(server.address.port, server.address.host)
      socket.write(asked, () => socket.destroy())
    })
  })

  it('asks before it stores arrived bytes of a body, and continues to read after a refusal', async () => {
    const sizes: number[] = []
    const server = await listener.listen({ host: '127.0.0.1', port: 0 }, exchange => {
      if (exchange.method === 'GET') return exchange.send(200, {}, 'next')
      exchange.readBody(1_000_000, bytes => {
        sizes.push(bytes)
        throw new Error('full')
      }).catch((error: Error) => exchange.send(503, {}, error.message))
    })
    const received = await exchangeBytes(server, asked, (text, write) => {
      if (text.endsWith('full')) write(`${'x'.repeat(990)}GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    })
    expect(sizes).to.deep.equal([10])
    expect(received).to.match(/^HTTP\/1.1 503 [^]*fullHTTP\/1.1 200 [^]*next$/)
  })

  it('continues to read a large body when the reader of its chunks stops', async () => {
    const bytes = 3_000_000
    const server = await listener.listen({ host: '127.0.0.1', port: 0 }, exchange => {
      if (exchange.method === 'GET') return exchange.send(200, {}, 'next')
      void exchange.body[Symbol.asyncIterator]().next().then(() => exchange.send(400, {}, 'refused'))
    })
    const large = `PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: ${bytes}\r\n\r\n${'x'.repeat(bytes)}`
    const received = await exchangeBytes(server, `${large}GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    expect(received).to.match(/^HTTP\/1.1 400 [^]*refusedHTTP\/1.1 200 [^]*next$/)
  })

  it('handles the requests of one connection one after the other', async () => {
    const order: string[] = []
    const server = await listener.listen({ host: '127.0.0.1', port: 0 }, exchange => {
      order.push(`${exchange.target} begins`)
      setTimeout(() => {
        order.push(`${exchange.target} ends`)
        exchange.send(200, {}, exchange.target)
      }, exchange.target === '/a' ? 20 : 0)
    })
    const received = await exchangeBytes(server, ['a', 'b', 'c'].map(name =>
      `GET /${name} HTTP/1.1\r\nHost: x\r\n${name === 'c' ? 'Connection: close\r\n' : ''}\r\n`).join(''))
    expect(order).to.deep.equal(['/a begins', '/a ends', '/b begins', '/b ends', '/c begins', '/c ends'])
    expect(received).to.match(/\/a[^]*\/b[^]*\/c$/)
  })

  it('cuts off a connection with more requests under way than it may have', async () => {
    let count = 0
    const server = await listener.listen({ host: '127.0.0.1', port: 0 }, () => { count++ })
    await exchangeBytes(server, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(1000))
    expect(count).to.equal(1)
  })

  it('cuts off a connection on which many large requests wait', async () => {
    let count = 0
    const server = await listener.listen({ host: '127.0.0.1', port: 0 }, () => { count++ })
    const client = new Client(server)
    client.socket.write(`GET / HTTP/1.1\r\nHost: x\r\nX-Large: ${'x'.repeat(60_000)}\r\n\r\n`.repeat(10))
    await client.closed
    expect(count).to.equal(1)
  })

  it('closes connections on request whose clients take nothing of an answer for some seconds', async function () {
    this.timeout(20_000)
    const server = await listener.listen({ host: '127.0.0.1', port: 0 }, exchange => {
      if (exchange.target === '/whole') return exchange.send(200, {}, Buffer.alloc(20_000_000))
      const writer = exchange.stream(200, {})
      void writer.write(Buffer.alloc(20_000_000)).catch(() => {})
    })
    for (const target of ['/whole', '/stream']) {
      const client = await new Client(server).opened()
      client.socket.pause()
      client.socket.write(`GET ${target} HTTP/1.1\r\nHost: x\r\n\r\n`)
      expect(listener.endStalled()).to.equal(false)
      while (!listener.endStalled()) await new Promise(resolve => setTimeout(resolve, 50))
      client.socket.resume()
      await client.closed
    }
    expect(listener.endStalled()).to.equal(false)
  })

  it('closes as many of these connections as the caller wants, the one that has waited for longest first', async () => {
    const server = await listener.listen({ host: '127.0.0.1', port: 0 }, exchange => {
      exchange.send(200, {}, Buffer.alloc(20_000_000))
    })
    const clients: Client[] = []
    for (let count = 0; count < 3; count++) {
      const client = await new Client(server).opened()
      client.socket.pause()
      client.socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
      await new Promise(resolve => setTimeout(resolve, 20))
      clients.push(client)
    }
    while (!listener.endStalled(1)) await new Promise(resolve => setTimeout(resolve, 5))
    while (!listener.endStalled(1)) await new Promise(resolve => setTimeout(resolve, 5))
    for (const { socket } of clients) socket.resume()
    await Promise.all(clients.slice(0, 2).map(client => client.closed))
    expect(clients[2]!.socket.closed).to.equal(false)
    clients[2]!.socket.destroy()
  })

  it('shows a response with large headers as undelivered, too', async () => {
    let client: Socket | undefined
    await handled(async exchange => {
      exchange.send(200, { 'X-Large': 'x'.repeat(20_000_000) }, 'small')
      expect(exchange.delivery).not.to.equal(undefined)
      client!.destroy()
      await exchange.delivery
    }, server => {
      client = connect(server.address.port, server.address.host).pause()
      client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    })
  })

  it('shows a large response as undelivered until the client is gone', async () => {
    let client: Socket | undefined
    await handled(async exchange => {
      exchange.send(200, {}, Buffer.alloc(20_000_000))
      const { delivery } = exchange
      expect(delivery).not.to.equal(undefined)
      const first = await Promise.race([delivery, new Promise(resolve => setImmediate(resolve, 'not yet'))])
      expect(first).to.equal('not yet')
      client!.destroy()
      await delivery
    }, server => {
      client = connect(server.address.port, server.address.host).pause()
      client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    })
  })

  /** A connection with the bytes received on it. */
  class Client {
    readonly socket: Socket
    readonly closed: Promise<void>
    received = ''
    #onData: (() => void) | undefined

    constructor(server: HttpServer, localAddress = '127.0.0.1') {
      this.socket = connect({ port: server.address.port, host: server.address.host, localAddress })
      this.closed = new Promise(resolve => this.socket.once('close', () => { this.#onData?.(); resolve() }))
      this.socket.on('error', () => {})
      this.socket.on('data', data => { this.received += data; this.#onData?.() })
    }

    async opened(): Promise<this> {
      if (this.socket.connecting) await once(this.socket, 'connect')
      return this
    }

    /** Returns the response to a GET; when the connection closes first, the bytes received until then. */
    async get(target: string): Promise<string> {
      this.received = ''
      this.socket.write(`GET ${target} HTTP/1.1\r\nHost: x\r\n\r\n`)
      while (!this.received.endsWith('.') && !this.socket.closed) {
        await new Promise<void>(resolve => { this.#onData = resolve })
      }
      return this.received
    }
  }

  /** Starts a server that answers every request except `/busy` at once. */
  async function limited(
    options: NodeHttpListenerOptions,
  ): Promise<{ readonly server: HttpServer; readonly busy: HttpExchange[]; onBusy: () => void }> {
    listener = new NodeHttpListener(options)
    const state = { busy: [] as HttpExchange[], onBusy: () => {} }
    const server = await listener.listen({ host: '127.0.0.1', port: 0 }, exchange => {
      if (exchange.target !== '/busy') return exchange.send(exchange.isRefused ? 503 : 200, {}, 'answer.')
      state.busy.push(exchange)
      state.onBusy()
    })
    return Object.assign(state, { server })
  }

  const okay = /^HTTP\/1.1 200 [^]*Connection: keep-alive[^]*answer\.$/
  const refusal = /^HTTP\/1.1 503 [^]*Connection: close[^]*answer\.$/

  it('closes the connection that is idle for longest when there are too many', async () => {
    const { server } = await limited({ connectionsMax: 3 })
    const first = new Client(server)
    expect(await first.get('/')).to.match(okay)
    const silent = await new Client(server).opened()
    const third = new Client(server)
    expect(await third.get('/')).to.match(okay)
    expect(await first.get('/')).to.match(okay)
    const fourth = new Client(server)
    expect(await fourth.get('/')).to.match(okay)
    await silent.closed
    expect(await first.get('/')).to.match(okay)
    const fifth = new Client(server)
    expect(await fifth.get('/')).to.match(okay)
    await third.closed
    for (const { socket } of [first, fourth, fifth]) socket.destroy()
  })

  it('answers once beyond the limit while all connections are busy, even if many refused ones are silent', async () => {
    const state = await limited({ connectionsMax: 2 })
    const busy = [new Client(state.server), new Client(state.server)]
    const bothBusy = new Promise<void>(resolve => { state.onBusy = () => { if (state.busy.length === 2) resolve() } })
    for (const { socket } of busy) socket.write('GET /busy HTTP/1.1\r\nHost: x\r\n\r\n')
    await bothBusy
    const refused = new Client(state.server)
    expect(await refused.get('/')).to.match(refusal)
    await refused.closed
    const silent = await Promise.all(Array.from({ length: 100 }, () => new Client(state.server).opened()))
    expect(await new Client(state.server).get('/')).to.match(refusal)
    for (const exchange of state.busy) exchange.send(200, {}, 'late.')
    // When the server answers the next request of the connection, it has finished the previous one.
    for (const client of busy) {
      while (!client.received.endsWith('late.')) await once(client.socket, 'data')
      expect(await client.get('/')).to.match(okay)
    }
    const next = new Client(state.server)
    expect(await next.get('/')).to.match(okay)
    for (const { socket } of [...busy, ...silent, next]) socket.destroy()
  })

  it('leaves room for other addresses', async () => {
    const state = await limited({ connectionsMax: 4, addressPercent: 50 })
    const bothBusy = new Promise<void>(resolve => { state.onBusy = () => { if (state.busy.length === 2) resolve() } })
    const busy = [new Client(state.server), new Client(state.server)]
    for (const { socket } of busy) socket.write('GET /busy HTTP/1.1\r\nHost: x\r\n\r\n')
    await bothBusy
    expect(await new Client(state.server).get('/')).to.match(refusal)
    const elsewhere = new Client(state.server, '127.0.0.2')
    expect(await elsewhere.get('/')).to.match(okay)
    for (const { socket } of [...busy, elsewhere]) socket.destroy()
  })

  it('reserves descriptors for other uses', () => {
    expect(connectionLimits(512, 32_768, 75)).to.deep.equal({ total: 192, perAddress: 144 })
    expect(connectionLimits(1_048_576, 32_768, 75)).to.deep.equal({ total: 32_768, perAddress: 24_576 })
    expect(connectionLimits(20_000, 32_768, 100)).to.deep.equal({ total: 16_936, perAddress: 16_936 })
    expect(connectionLimits(null, 100, 50)).to.deep.equal({ total: 100, perAddress: 50 })
    expect(connectionLimits(64, 100, 50)).to.deep.equal({ total: 1, perAddress: 1 })
  })

  it('ends the wait for a body that comes too slowly, and closes the connection with the answer', async () => {
    const server = await listener.listen({ host: '127.0.0.1', port: 0 }, exchange => {
      exchange.bodyPace = { graceMs: 50, bytesPerSecond: 1_000_000 }
      exchange.readBody(1000)
        .then(() => exchange.send(200, {}, 'whole'), (error: Error) => exchange.send(408, {}, error.name))
    })
    expect(await exchangeBytes(server, asked)).to.match(/^HTTP\/1.1 408 [^]*Connection: close[^]*BodyTooSlowError$/)
    const prompt = `PUT / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 10\r\n\r\nsome of it`
    expect(await exchangeBytes(server, prompt)).to.match(/whole$/)
  })

  it('ends the wait for a body when its signal aborts, now or before the next bytes are awaited', async () => {
    for (const isLate of [false, true]) {
      const controller = new AbortController()
      const server = await listener.listen({ host: '127.0.0.1', port: 0 }, exchange => {
        exchange.bodyPace = { graceMs: 60_000, bytesPerSecond: 1, signal: controller.signal }
        if (isLate) controller.abort()
        exchange.readBody(1000)
          .then(() => exchange.send(200, {}, 'whole'), (error: Error) => exchange.send(503, {}, error.name))
        if (!isLate) setImmediate(() => { controller.abort() })
      })
      expect(await exchangeBytes(server, asked)).to.match(/^HTTP\/1.1 503 [^]*Connection: close[^]*BodyTooSlowError$/)
      const whole = 'PUT / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx'
      expect(await exchangeBytes(server, whole), 'a body that has arrived').to.match(/whole$/)
    }
  })

  it('cuts off a body in chunks that comes too slowly, but not for the time in which nobody reads', async () => {
    const ends: string[] = []
    const server = await listener.listen({ host: '127.0.0.1', port: 0 }, exchange => {
      exchange.bodyPace = { graceMs: 50, bytesPerSecond: 1_000_000 }
      const read = async (): Promise<void> => {
        for await (const chunk of exchange.body) {
          if (chunk.length > 0) await new Promise(resolve => { setTimeout(resolve, 100) })
        }
      }
      read().then(() => { ends.push('whole'); exchange.send(200, { Connection: 'close' }, '') }, (error: Error) => {
        ends.push(error.name)
      })
    })
    await exchangeBytes(server, 'PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nsome of it')
    await exchangeBytes(server, asked)
    expect(ends).to.deep.equal(['whole', 'ClientGoneError'])
  })

  it('gives each status its own text, also after another one was tried', async () => {
    const server = await listener.listen({ host: '127.0.0.1', port: 0 }, exchange => {
      expect(() => exchange.send(201, { ETag: '\n' }, '')).to.throw('Invalid character')
      exchange.send(500, {}, '')
    })
    expect(await exchangeBytes(server, 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')).to.match(
      /^HTTP\/1.1 500 Internal Server Error\r\n/,
    )
  })

  it('sends 100 Continue when the handler reads the body', async () => {
    const server = await listener.listen({ host: '127.0.0.1', port: 0 }, exchange => {
      void exchange.readBody(10).then(body => exchange.send(200, { Connection: 'close' }, body))
    })
    const head = 'PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n'
    let sent = false
    const received = await exchangeBytes(server, head, (text, write) => {
      if (!sent && text.includes('100 Continue')) { sent = true; write('body') }
    })
    expect(received).to.match(/^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 200 OK\r\n[^]*\r\n\r\nbody$/)
  })

  it('answers at once and closes the connection when the handler does not read the body', async () => {
    const server = await listener.listen({ host: '127.0.0.1', port: 0 }, exchange => {
      void exchange.readBody(3).catch(() => exchange.send(413, {}, 'too large'))
    })
    const received = await exchangeBytes(
      server, 'PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n',
    )
    expect(received).to.match(/^HTTP\/1.1 413 /)
    expect(received).to.match(/Connection: close/)
  })

  it('keeps connections open between requests and closes idle ones at once', async () => {
    let count = 0
    const server = await listener.listen(
      { host: '127.0.0.1', port: 0 }, exchange => exchange.send(200, {}, `answer ${++count}`),
    )
    const received = await exchangeBytes(server, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n', (text, write) => {
      if (text.endsWith('answer 1')) write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
      if (text.endsWith('answer 2')) void server.close(5000)
    })
    expect(received.endsWith('answer 2')).to.equal(true)
  })

  it('refuses malformed requests and endless headers', async () => {
    const server = await listener.listen({ host: '127.0.0.1', port: 0 }, exchange => exchange.send(200, {}, ''))
    expect(await exchangeBytes(server, 'nonsense\r\n\r\n')).to.match(/^HTTP\/1.1 400 /)
    const endless = `GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(100_000)}\r\n\r\n`
    expect(await exchangeBytes(server, endless)).to.match(/^HTTP\/1.1 431 /)
  })

  it('sends the headers of a stream before its first chunk', async () => {
    const server = await listener.listen({ host: '127.0.0.1', port: 0 }, exchange => {
      const writer = exchange.stream(200, {})
      exchange.signal.addEventListener('abort', () => writer.abort())
    })
    const client = new AbortController()
    const { host, port } = server.address
    const outgoing = httpRequest({ host, port, signal: client.signal }).end()
    const [response] = await once(outgoing, 'response')
    expect(response.statusCode).to.equal(200)
    outgoing.on('error', () => {})
    response.on('error', () => {})
    client.abort()
  })

  it('resets the connection when a response of an announced length is aborted', async () => {
    const server = await listener.listen({ host: '127.0.0.1', port: 0 }, exchange => {
      const writer = exchange.stream(200, { 'Content-Length': '10' })
      void writer.write('half ').then(() => writer.abort())
    })
    const failure = await exchangeBytes(server, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n')
      .catch((error: NodeJS.ErrnoException) => error.code)
    expect(failure).to.equal('ECONNRESET')
  })
})
