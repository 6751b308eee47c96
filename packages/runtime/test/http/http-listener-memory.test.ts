import { expect } from 'chai'
import { ManualClock } from '../../src/clock/clock-manual.ts'
import { ResponseCutError } from '../../src/http/http-exchange-memory.ts'
import type { HttpExchange } from '../../src/http/http-listener.ts'
import { MemoryHttpListener } from '../../src/http/http-listener-memory.ts'
import { httpListenerSuite } from '../../src/http/http-listener-suite.ts'

httpListenerSuite('MemoryHttpListener', {
  create: async () => new MemoryHttpListener(),
  request: async (listener, server, { body, onChunk, ...request }) => {
    const content = Array.isArray(body) ? chunks(body) : body as string | undefined
    const response = await (listener as MemoryHttpListener).open(
      { ...request, ...content !== undefined && { body: content } }, server.address.port,
    )
    const parts: Uint8Array[] = []
    let truncated = false
    try {
      for await (const chunk of response.chunks) {
        parts.push(chunk)
        onChunk?.()
      }
    } catch (error) {
      expect(error).to.be.instanceOf(ResponseCutError)
      truncated = true
    }
    return { status: response.status, headers: response.headers, body: Buffer.concat(parts).toString(), truncated }
  },
  destroy: async listener => (listener as MemoryHttpListener).revoke(),
})

async function* chunks(texts: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield Buffer.from(text)
}

describe('MemoryHttpListener', () => {
  it('aborts running requests when the grace time has passed on its clock', async () => {
    const clock = new ManualClock()
    const listener = new MemoryHttpListener(clock)
    const server = await listener.listen({ host: 'node', port: 5984 }, () => {})
    const outcome = listener.inject({ target: '/' }).catch(error => error.message)
    const closed = server.close(100)
    await clock.advance(100)
    await closed
    expect(await outcome).to.equal('the server is gone')
    expect(clock.pendingTimers).to.equal(0)
  })

  it('aborts the last requests of a closing server when the process is gone', async () => {
    const listener = new MemoryHttpListener()
    const server = await listener.listen({ host: 'node', port: 5984 }, () => {})
    const outcome = listener.inject({ target: '/' }).catch(error => error.message)
    const closed = server.close(1000)
    listener.revoke()
    expect(await outcome).to.equal('the server is gone')
    await closed
  })

  it('keeps a later server on the port of one that is cut when its grace time has passed', async () => {
    const clock = new ManualClock()
    const listener = new MemoryHttpListener(clock)
    const server = await listener.listen({ host: 'node', port: 5984 }, () => {})
    const outcome = listener.inject({ target: '/' }).catch(error => error.message)
    const closed = server.close(100)
    await listener.listen({ host: 'other', port: 5984 }, exchange => exchange.send(200, {}, ''))
    await clock.advance(100)
    await closed
    expect(await outcome).to.equal('the server is gone')
    expect((await listener.inject({ target: '/' }, 5984)).status).to.equal(200)
  })

  it('lets a client stop reading a stream', async () => {
    const listener = new MemoryHttpListener()
    const exchanges: HttpExchange[] = []
    await listener.listen({ host: 'node', port: 5984 }, exchange => {
      exchanges.push(exchange)
      void exchange.stream(200, {}).write('row')
    })
    const { chunks } = await listener.open({ target: '/_changes' })
    for await (const chunk of chunks) {
      expect(Buffer.from(chunk).toString()).to.equal('row')
      break
    }
    expect(exchanges[0]?.signal.aborted).to.equal(true)
  })
})
