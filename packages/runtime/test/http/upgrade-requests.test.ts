import { once } from 'node:events'
import { connect } from 'node:net'
import { expect } from 'chai'
import type { HttpServer } from '../../src/http/http-listener.ts'
import { NodeHttpListener } from '../../src/http/http-listener-node.ts'

describe('Requests with Upgrade', () => {
  const upgrade = 'Host: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n'
  const plain = 'GET /next HTTP/1.1\r\nHost: x\r\n\r\n'

  let listener: NodeHttpListener
  let handled: string[]
  beforeEach(() => {
    listener = new NodeHttpListener()
    handled = []
  })
  afterEach(() => listener.revoke())

  function listen(): Promise<HttpServer> {
    return listener.listen({ host: '127.0.0.1', port: 0 }, async exchange => {
      handled.push(exchange.target)
      const body = await exchange.readBody(10)
      exchange.send(200, {}, `${exchange.target}:${body.length}.`)
    })
  }

  /** Sends the texts in turn, each after the answer to the one before it; returns what was received until the end. */
  async function exchange(...texts: readonly string[]): Promise<string> {
    const { port, host } = (await listen()).address
    const socket = connect(port, host)
    let received = ''
    const waiting = [...texts]
    const next = (): void => { if (waiting.length > 0) socket.write(waiting.shift()!) }
    socket.on('data', data => {
      received += data
      if (received.endsWith('.')) next()
    })
    next()
    await once(socket, 'close')
    return received
  }

  const last = 'GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'

  it('are answered as others, and leave the connection open', async () => {
    const received = await exchange(
      `GET /a HTTP/1.1\r\n${upgrade}\r\n`,
      `PUT /b HTTP/1.1\r\n${upgrade}Content-Length: 3\r\n\r\nabc`,
      `GET /c HTTP/1.1\r\n${upgrade}\r\n`,
      last,
    )
    expect(received.match(/HTTP\/1.1 200 OK/g)).to.have.length(4)
    expect(received).to.match(/\/a:0\.[^]*\/b:3\.[^]*\/c:0\.[^]*\/last:0\.$/)
    expect(received.match(/Connection: close/g)).to.have.length(1)
  })

  const followed: Record<string, string> = {
    'behind a request': `GET /a HTTP/1.1\r\n${upgrade}\r\n${plain}`,
    'behind a body': `PUT /a HTTP/1.1\r\n${upgrade}Content-Length: 3\r\n\r\nabc${plain}`,
    'behind a body in chunks':
      `PUT /a HTTP/1.1\r\n${upgrade}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n${plain}`,
    'behind the second request': `GET /first HTTP/1.1\r\nHost: x\r\n\r\nGET /a HTTP/1.1\r\n${upgrade}\r\n${plain}`,
    'the beginning of a request': `GET /a HTTP/1.1\r\n${upgrade}\r\n${plain.slice(0, 10)}`,
  }
  for (const [what, text] of Object.entries(followed)) {
    it(`end the connection with the answer when more follows in the same packet: ${what}`, async () => {
      const received = await exchange(text)
      expect(received).to.match(/Connection: close[^]*\/a:[03]\.$/)
      expect(handled.at(-1)).to.equal('/a')
    })
  }
})
