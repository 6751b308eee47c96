import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { expect } from 'chai'
import type { HttpServer } from '../../src/http/http-listener.ts'
import { NodeHttpListener } from '../../src/http/http-listener-node.ts'
import { httpListenerSuite } from '../../src/http/http-listener-suite.ts'
import type { ClientRequest, ClientResponse } from '../../src/http/http-listener-suite.ts'

httpListenerSuite('NodeHttpListener', {
  create: async () => new NodeHttpListener(),
  request: async (_listener, server, request) => sendRequest(server, request),
  destroy: async listener => (listener as NodeHttpListener).revoke(),
})

function sendRequest(server: HttpServer, { method, target, headers = {}, body, signal, onChunk }: ClientRequest): Promise<ClientResponse> {
  return new Promise((resolve, reject) => {
    const { host, port } = server.address
    const outgoing = httpRequest({ host, port, method, path: target, headers, ...signal && { signal } }, response => {
      const parts: Buffer[] = []
      response.on('data', part => { parts.push(part); onChunk?.() })
      response.on('error', () => {})
      response.on('close', () => resolve({
        status: response.statusCode as number, headers: response.headers, body: Buffer.concat(parts).toString(), truncated: !response.complete,
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

  /** What comes back on one socket for the given bytes, until it closes. */
  async function exchangeBytes(server: HttpServer, bytes: string, onData: (received: string, write: (more: string) => void) => void = () => {}): Promise<string> {
    const socket = connect(server.address.port, server.address.host)
    let received = ''
    socket.on('data', data => { received += data; onData(received, more => socket.write(more)) })
    socket.write(bytes)
    await once(socket, 'close')
    return received
  }

  it('gives each status its own text, also after another one was tried', async () => {
    const server = await listener.listen({ host: '127.0.0.1', port: 0 }, exchange => {
      expect(() => exchange.send(201, { ETag: '\n' }, '')).to.throw('Invalid character')
      exchange.send(500, {}, '')
    })
    expect(await exchangeBytes(server, 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')).to.match(/^HTTP\/1.1 500 Internal Server Error\r\n/)
  })

  it('says 100 Continue when the handler wants the body', async () => {
    const server = await listener.listen({ host: '127.0.0.1', port: 0 }, exchange => {
      void exchange.readBody(10).then(body => exchange.send(200, { Connection: 'close' }, body))
    })
    let sent = false
    const received = await exchangeBytes(server, 'PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n', (text, write) => {
      if (!sent && text.includes('100 Continue')) { sent = true; write('body') }
    })
    expect(received).to.match(/^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 200 OK\r\n[^]*\r\n\r\nbody$/)
  })

  it('answers at once and closes when the handler does not want the body', async () => {
    const server = await listener.listen({ host: '127.0.0.1', port: 0 }, exchange => {
      void exchange.readBody(3).catch(() => exchange.send(413, {}, 'too large'))
    })
    const received = await exchangeBytes(server, 'PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n')
    expect(received).to.match(/^HTTP\/1.1 413 /)
    expect(received).to.match(/Connection: close/)
  })

  it('keeps connections open between requests and closes idle ones at once', async () => {
    let count = 0
    const server = await listener.listen({ host: '127.0.0.1', port: 0 }, exchange => exchange.send(200, {}, `answer ${++count}`))
    const received = await exchangeBytes(server, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n', (text, write) => {
      if (text.endsWith('answer 1')) write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
      if (text.endsWith('answer 2')) void server.close(5000)
    })
    expect(received.endsWith('answer 2')).to.equal(true)
  })

  it('refuses malformed requests and endless headers', async () => {
    const server = await listener.listen({ host: '127.0.0.1', port: 0 }, exchange => exchange.send(200, {}, ''))
    expect(await exchangeBytes(server, 'nonsense\r\n\r\n')).to.match(/^HTTP\/1.1 400 /)
    expect(await exchangeBytes(server, `GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(100_000)}\r\n\r\n`)).to.match(/^HTTP\/1.1 431 /)
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

  it('resets the connection when an answer of an announced length breaks off', async () => {
    const server = await listener.listen({ host: '127.0.0.1', port: 0 }, exchange => {
      const writer = exchange.stream(200, { 'Content-Length': '10' })
      void writer.write('half ').then(() => writer.abort())
    })
    const failure = await exchangeBytes(server, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n').catch((error: NodeJS.ErrnoException) => error.code)
    expect(failure).to.equal('ECONNRESET')
  })
})
