import { once } from 'node:events'
import { connect } from 'node:net'
import { expect } from 'chai'
import { ClientGoneError } from '../../src/http/http-listener.ts'
import type { HttpExchange } from '../../src/http/http-listener.ts'
import { NodeHttpListener } from '../../src/http/http-listener-node.ts'

describe('Malformed requests', () => {
  let listener: NodeHttpListener
  beforeEach(() => { listener = new NodeHttpListener() })
  afterEach(() => listener.revoke())

  /**
   * Sends the first text, and the second one when the handler has the first request, or as soon as it is answered.
   * @returns what was received until the connection is closed
   */
  async function received(
    first: string, second: string, handler: (exchange: HttpExchange, answer: () => void) => void,
  ): Promise<string> {
    const server = await listener.listen({ host: '127.0.0.1', port: 0 }, exchange => handler(exchange, () => {
      if (!exchange.signal.aborted) exchange.send(200, {}, 'answer.')
    }))
    const socket = connect(server.address.port, server.address.host)
    let text = ''
    socket.on('error', () => {})
    socket.on('data', data => {
      text += data
      if (text.endsWith('answer.')) socket.write(second)
    })
    socket.write(first)
    await once(socket, 'close')
    return text
  }

  const request = 'PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}'
  const largeHead = `GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(100_000)}`

  for (const [what, bytes] of [['garbage', 'garbage\r\n\r\n'], ['large headers', largeHead]] as const) {
    it(`with ${what} do not answer the request before them, which may take effect`, async () => {
      const text = await received(request + bytes, '', async (exchange, answer) => {
        await exchange.readBody(10)
        setTimeout(answer, 50)
      })
      expect(text).to.equal('')
    })

    it(`with ${what} are refused after an answer`, async () => {
      const text = await received(request, bytes, (_exchange, answer) => answer())
      expect(text).to.match(/^HTTP\/1.1 200 [^]*answer\.HTTP\/1.1 4\d\d [A-Z][^]*\r\nConnection: close\r\n\r\n$/)
    })
  }

  it('are refused when their own body is malformed', async () => {
    let failure: unknown
    const head = 'PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n'
    const text = await received(`${head}zz\r\n`, '', exchange => {
      exchange.readBody(10).catch((error: unknown) => { failure = error })
    })
    expect(text).to.equal('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n')
    await new Promise(resolve => { setImmediate(resolve) })
    expect(failure === undefined || failure instanceof ClientGoneError).to.equal(true)
  })

  it('have no answer when they wait behind another one and their body is malformed', async () => {
    const head = 'PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n'
    const text = await received(`${request}${head}zz\r\n`, '', (_exchange, answer) => setTimeout(answer, 50))
    expect(text).to.equal('')
  })
})
