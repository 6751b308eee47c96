/** Bytes that a client sends to the port of HTTP. */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import fc from 'fast-check'
import { NodeHttpListener } from '@sectional/runtime'
import { MemoryNode } from '../../packages/http/test/memory-node.ts'
import { target, type FuzzTarget } from '../fuzz-target.ts'
import { changed } from '../generators/odd-text.ts'

const host = '127.0.0.1'
/** Milliseconds after which a connection must have ended whose client sends nothing more. */
const endMsMax = 5000
/** Milliseconds without an answer after which the client ends the connection. */
const answerMsMax = 30

const requests = [
  'GET /_up HTTP/1.1\r\nHost: a\r\n\r\n', 'GET / HTTP/1.0\r\n\r\n',
  'HEAD /db HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
  'PUT /db/x HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\n{"a":1}',
  'POST /db HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n'
    + '2\r\n{}\r\n0\r\n\r\n',
  'POST /db/_all_docs HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}',
  'GET http://a/_up HTTP/1.1\r\nHost: b\r\n\r\n', 'OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n',
  'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n',
  'GET /_up HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'POST /db HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
]
const oddLines = [
  'Content-Length: 1\r\n', 'Content-Length: +1\r\n', 'Content-Length: 1, 1\r\n', 'Transfer-Encoding: xchunked\r\n',
  'Transfer-Encoding : chunked\r\n', ' folded\r\n', 'A: b\n', 'A\0: b\r\n', 'Host: b\r\n',
  `X: ${'x'.repeat(70_000)}\r\n`,
  'Cookie: AuthSession=YTpiOmM\r\n', 'Authorization: Basic !\r\n', ':\r\n', 'A: \x7f\r\n',
]
const withLine = fc.tuple(fc.constantFrom(...requests), fc.constantFrom(...oddLines)).map(([text, line]) => {
  const at = text.indexOf('\r\n') + 2
  return text.slice(0, at) + line + text.slice(at)
})
const sent = fc.array(fc.oneof(fc.constantFrom(...requests), withLine, changed(fc.constantFrom(...requests))), {
  minLength: 1, maxLength: 3,
}).map(texts => Buffer.from(texts.join(''), 'latin1'))

/** Sends the bytes and returns what came back until the server has closed the connection. */
function exchange(port: number, bytes: Uint8Array): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const socket = connect(port, host)
  const chunks: Buffer[] = []
  const late = setTimeout(() => {
    socket.destroy()
    reject(new Error(`the connection is open ${endMsMax} ms after the client has ended it`))
  }, endMsMax)
  socket.on('data', chunk => {
    chunks.push(chunk)
    end.refresh()
  })
  socket.on('error', () => {})
  socket.on('close', () => {
    clearTimeout(late)
    clearTimeout(end)
    resolve(Buffer.concat(chunks).toString('latin1'))
  })
  socket.write(bytes)
  // The client ends the connection after the first answer, or when there is none.
  const end = setTimeout(() => { socket.end() }, answerMsMax)
  return promise
}

const bytes = target({
  name: 'http-sockets', runsInTests: 20, inputs: sent,
  property: 'Any bytes are answered or the connection ends, never with an error of the server, and others are served.',
  check: async raw => {
    const node = new MemoryNode()
    const listener = new NodeHttpListener()
    const server = await listener.listen({ host, port: 0 }, node.api.handler)
    const ticks = setInterval(() => { void node.clock.advance(50) }, 5)
    try {
      await node.put('/db?q=1')
      await node.put('/db/_security', {})
      const answers = await exchange(server.address.port, raw)
      assert.doesNotMatch(answers, /^HTTP\/1\.1 50[0-2]/m)
      if (answers !== '') assert.match(answers, /^HTTP\/1\.1 \d{3} /)
      assert.deepEqual(node.log.messages('error'), [])
      const plain = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'
      const good = await exchange(server.address.port, Buffer.from(plain))
      assert.match(good, /^HTTP\/1\.1 200 /)
    } finally {
      clearInterval(ticks)
      await server.close(0)
      await node.stop()
    }
  },
})

export const socketTargets: readonly FuzzTarget[] = [bytes]
