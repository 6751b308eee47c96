/**
 * The tests that every `HttpListener` must pass; each implementation runs them under mocha. Exported as
 * `@sectional/runtime/http-listener-suite`.
 */
import assert from 'node:assert/strict'
import { BodyTooLargeError, ClientGoneError } from './http-listener.ts'
import type { HttpExchange, HttpListener, HttpServer } from './http-listener.ts'

export interface ClientRequest {
  readonly method: string
  readonly target: string
  readonly headers?: Readonly<Record<string, string>>
  /** An array of chunks is sent without a Content-Length. */
  readonly body?: string | readonly string[]
  /** The client closes the connection when this signal aborts. */
  readonly signal?: AbortSignal
  /** Called for each chunk of the response's body. */
  readonly onChunk?: () => void
}

export interface ClientResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly body: string
  /** True when the connection broke before the end of the body. */
  readonly truncated: boolean
}

export interface HttpListenerSuiteOptions {
  readonly create: () => Promise<HttpListener>
  /** Sends a request; rejects when there is no response. */
  readonly request: (listener: HttpListener, server: HttpServer, request: ClientRequest) => Promise<ClientResponse>
  readonly destroy: (listener: HttpListener) => Promise<void>
  /** Whether the tests use servers with TLS. */
  readonly encrypted?: boolean
}

const longGraceMs = 5000

/** A server whose handler is set by each test. */
class Fixture {
  readonly #options: HttpListenerSuiteOptions
  #listener: HttpListener | undefined
  #server: HttpServer | undefined
  handler: (exchange: HttpExchange) => void | Promise<void> = exchange => exchange.send(200, {}, 'ok')
  failure: unknown

  constructor(options: HttpListenerSuiteOptions) {
    this.#options = options
  }

  get listener(): HttpListener {
    assert(this.#listener)
    return this.#listener
  }

  get server(): HttpServer {
    assert(this.#server)
    return this.#server
  }

  get encrypted(): boolean {
    return this.#options.encrypted ?? false
  }

  async setUp(): Promise<void> {
    this.failure = undefined
    this.#listener = await this.#options.create()
    const address = { host: '127.0.0.1', port: 0, encrypted: this.encrypted }
    this.#server = await this.listener.listen(address, exchange => {
      void (async () => this.handler(exchange))().catch(error => {
        this.failure = error
        if (!exchange.headersSent) exchange.send(500, {}, String(error))
      })
    })
  }

  async tearDown(): Promise<void> {
    await this.server.close(0)
    await this.#options.destroy(this.listener)
  }

  request(request: Partial<ClientRequest>): Promise<ClientResponse> {
    return this.#options.request(this.listener, this.server, { method: 'GET', target: '/', ...request })
  }
}

export function httpListenerSuite(name: string, options: HttpListenerSuiteOptions): void {
  describe(`${name} as an HTTP listener`, () => {
    const fixture = new Fixture(options)
    beforeEach(() => fixture.setUp())
    afterEach(() => fixture.tearDown())
    describe('requests', () => requests(fixture))
    describe('request bodies', () => requestBodies(fixture))
    describe('responses', () => responses(fixture))
    describe('streamed responses', () => streamedResponses(fixture))
    describe('a client that goes away', () => clientsThatGoAway(fixture))
    describe('closing', () => closing(fixture))
  })
}

function requests(fixture: Fixture): void {
  it('come with their method, raw target and lower-case headers', async () => {
    let seen: unknown[] = []
    fixture.handler = exchange => {
      seen = [
        exchange.method, exchange.target, exchange.headers['x-test'], exchange.headers['destination'],
        exchange.headers['absent'], exchange.encrypted,
      ]
      assert.equal(exchange.remoteAddress, '127.0.0.1')
      exchange.send(200, {}, '')
    }
    const response = await fixture.request({
      method: 'COPY', target: '/db/a%2Fb+c?rev=%221%22&&x', headers: { 'X-Test': 'Yes', Destination: 'other' },
    })
    assert.equal(response.status, 200)
    assert.deepEqual(seen, ['COPY', '/db/a%2Fb+c?rev=%221%22&&x', 'Yes', 'other', undefined, fixture.encrypted])
  })
}

function requestBodies(fixture: Fixture): void {
  it('are read whole, whether their length is announced or not', async () => {
    fixture.handler = async exchange => exchange.send(200, {}, await exchange.readBody(100))
    for (const body of ['hello', '', ['he', 'l', 'lo']]) {
      assert.equal(
        (await fixture.request({ method: 'POST', body })).body, typeof body === 'string' ? body : body.join(''),
      )
    }
    assert.equal((await fixture.request({ method: 'GET' })).body, '')
  })

  it('are refused beyond the limit, announced or arriving, and the next request is served', async () => {
    fixture.handler = async exchange => {
      try {
        exchange.send(200, {}, await exchange.readBody(5))
      } catch (error) {
        assert(error instanceof BodyTooLargeError)
        exchange.send(413, {}, 'too large')
      }
    }
    assert.equal((await fixture.request({ method: 'POST', body: '12345' })).status, 200)
    assert.equal((await fixture.request({ method: 'POST', body: '123456' })).status, 413)
    assert.equal((await fixture.request({ method: 'POST', body: ['123', '456'] })).status, 413)
    assert.equal((await fixture.request({ method: 'POST', body: 'x'.repeat(100_000) })).status, 413)
    assert.equal((await fixture.request({ method: 'POST', body: '12345' })).status, 200)
    assert.equal(fixture.failure, undefined)
  })

  it('can be iterated, once', async () => {
    fixture.handler = async exchange => {
      const chunks: Uint8Array[] = []
      for await (const chunk of exchange.body) chunks.push(chunk)
      await assert.rejects(exchange.readBody(100), /once/)
      exchange.send(200, {}, Buffer.concat(chunks))
    }
    assert.equal((await fixture.request({ method: 'PUT', body: ['a', 'bc'] })).body, 'abc')
    assert.equal(fixture.failure, undefined)
  })

  it('need not be read completely, or at all', async () => {
    const body = Array<string>(20).fill('x'.repeat(10_000))
    fixture.handler = exchange => exchange.send(401, {}, 'no')
    assert.equal((await fixture.request({ method: 'PUT', body })).body, 'no')
    fixture.handler = async exchange => {
      for await (const chunk of exchange.body) if (chunk.length > 0) break
      exchange.send(400, {}, 'enough')
    }
    assert.equal((await fixture.request({ method: 'PUT', body })).body, 'enough')
    assert.equal((await fixture.request({ method: 'PUT', body: 'x' })).body, 'enough')
  })
}

function responses(fixture: Fixture): void {
  it('are sent with their length, headers and exact bytes', async () => {
    const headers = { 'X-One': '1', 'Set-Cookie': ['a=1', 'b=2'] }
    fixture.handler = exchange =>
      exchange.send(
        201, headers,
        exchange.target === '/text'
          ? 'grün'
          : Buffer.from('grün\u0000'.repeat(exchange.target === '/large' ? 10_000 : 1)),
      )
    for (const [target, body] of [
      ['/text', 'grün'], ['/bytes', 'grün\u0000'], ['/large', 'grün\u0000'.repeat(10_000)],
    ] as const) {
      const response = await fixture.request({ target })
      assert.equal(response.status, 201)
      assert.equal(response.body, body)
      assert.equal(response.headers['content-length'], String(Buffer.byteLength(body)))
      assert.equal(response.headers['x-one'], '1')
      assert.deepEqual(response.headers['set-cookie'], ['a=1', 'b=2'])
    }
    assert.deepEqual(Object.keys(headers), ['X-One', 'Set-Cookie'])
  })

  it('to HEAD have the length and no body', async () => {
    fixture.handler = exchange => exchange.send(200, {}, 'twelve bytes')
    const response = await fixture.request({ method: 'HEAD' })
    assert.equal(response.body, '')
    assert.equal(response.headers['content-length'], '12')
  })

  it('without a body by their status have no length', async () => {
    fixture.handler = exchange => exchange.send(304, { ETag: '"1"' }, '')
    const response = await fixture.request({})
    assert.equal(response.status, 304)
    assert.equal(response.headers['content-length'], undefined)
    assert.equal(response.headers['etag'], '"1"')
  })

  it('refuse invalid headers, and can be sent without them afterwards', async () => {
    fixture.handler = exchange => {
      for (const value of ['a\nb', 'a\0b', '\u2603']) {
        assert.throws(() => exchange.send(200, { 'X-One': value }, ''), /Invalid character/)
      }
      assert.throws(() => exchange.stream(200, { 'X-One': 'a\nb' }), /Invalid character/)
      exchange.send(404, { 'X-One': '1' }, 'again')
    }
    const response = await fixture.request({})
    assert.deepEqual([response.status, response.body, response.headers['x-one']], [404, 'again', '1'])
  })

  it('begin once', async () => {
    fixture.handler = exchange => {
      assert.equal(exchange.headersSent, false)
      exchange.send(200, {}, 'first')
      assert.equal(exchange.headersSent, true)
      assert.throws(() => exchange.send(200, {}, 'second'), /begun/)
      assert.throws(() => exchange.stream(200, {}), /begun/)
    }
    assert.equal((await fixture.request({})).body, 'first')
    assert.equal(fixture.failure, undefined)
  })
}

function streamedResponses(fixture: Fixture): void {
  it('arrive chunk by chunk, without a length', async () => {
    fixture.handler = async exchange => {
      const writer = exchange.stream(200, { 'X-One': '1' })
      for (const chunk of ['a', Buffer.from('b'), '', 'grün']) await writer.write(chunk)
      writer.end()
    }
    const response = await fixture.request({})
    assert.equal(response.body, 'abgrün')
    assert.equal(response.headers['content-length'], undefined)
    assert.equal(response.headers['x-one'], '1')
    assert.equal(response.truncated, false)
  })

  it('are of any size', async () => {
    const chunk = 'x'.repeat(100_000)
    fixture.handler = async exchange => {
      const writer = exchange.stream(200, {})
      for (let count = 0; count < 50; count++) await writer.write(chunk)
      writer.end()
    }
    assert.equal((await fixture.request({})).body.length, 50 * chunk.length)
  })

  it('may be written from the same memory again and again', async () => {
    const letters = Array.from({ length: 4000 }, (_, index) => String.fromCharCode(97 + index % 26))
    const memory = Buffer.alloc(8000)
    fixture.handler = async exchange => {
      const writer = exchange.stream(200, {})
      for (const letter of letters) await writer.write(memory.fill(letter))
      writer.end()
    }
    const { body } = await fixture.request({})
    assert.equal(body.length, letters.length * memory.length)
    const other = letters.findIndex((letter, index) =>
      body.slice(index * memory.length, (index + 1) * memory.length) !== letter.repeat(memory.length))
    assert.equal(other, -1)
  })

  it('are recognized as truncated when the server aborts them', async () => {
    const received = Promise.withResolvers<void>()
    fixture.handler = async exchange => {
      const writer = exchange.stream(200, {})
      await writer.write('part')
      await received.promise
      writer.abort()
    }
    const response = await fixture.request({ onChunk: received.resolve })
    assert.equal(response.status, 200)
    assert.equal(response.truncated, true)
  })
}

function clientsThatGoAway(fixture: Fixture): void {
  it('abort the signal', async () => {
    const client = new AbortController()
    const aborted = new Promise<unknown>(resolve => {
      fixture.handler = exchange => {
        assert.equal(exchange.signal.aborted, false)
        exchange.signal.addEventListener('abort', () => resolve(exchange.signal.reason))
        client.abort()
      }
    })
    await assert.rejects(fixture.request({ signal: client.signal }))
    assert(await aborted instanceof ClientGoneError)
  })

  it('have received no response, and one can be sent without effect', async () => {
    const client = new AbortController()
    const seen = new Promise<readonly boolean[]>(resolve => {
      fixture.handler = exchange => {
        exchange.signal.addEventListener('abort', () => {
          const before = exchange.headersSent
          exchange.send(500, {}, 'to nobody')
          resolve([before, exchange.headersSent])
        })
        client.abort()
      }
    })
    await assert.rejects(fixture.request({ signal: client.signal }))
    assert.deepEqual(await seen, [false, true])
  })

  it('fail the writer', async () => {
    const client = new AbortController()
    const failure = new Promise<unknown>(resolve => {
      fixture.handler = async exchange => {
        const writer = exchange.stream(200, {})
        await writer.write('first')
        client.abort()
        try {
          for (;;) await writer.write('x'.repeat(100_000))
        } catch (error) {
          resolve(error)
        }
      }
    })
    await fixture.request({ signal: client.signal }).catch(() => {})
    assert(await failure instanceof ClientGoneError)
  })

  it('do not abort the signals of complete exchanges', async () => {
    const signals: AbortSignal[] = []
    fixture.handler = exchange => { signals.push(exchange.signal); exchange.send(200, {}, 'done') }
    await fixture.request({})
    await fixture.server.close(0)
    assert.deepEqual(signals.map(signal => signal.aborted), [false])
  })
}

function closing(fixture: Fixture): void {
  it('waits for running requests and takes no new ones', async () => {
    const running = Promise.withResolvers<HttpExchange>()
    fixture.handler = exchange => running.resolve(exchange)
    const response = fixture.request({})
    const exchange = await running.promise
    let closed = false
    const close = fixture.server.close(longGraceMs).then(() => { closed = true })
    await assert.rejects(fixture.request({}))
    assert.equal(closed, false)
    exchange.send(200, {}, 'finished')
    assert.equal((await response).body, 'finished')
    await close
  })

  it('aborts running requests when the grace time has passed', async () => {
    const running = Promise.withResolvers<HttpExchange>()
    fixture.handler = exchange => running.resolve(exchange)
    const response = fixture.request({})
    const { signal } = await running.promise
    await fixture.server.close(0)
    await assert.rejects(response)
    assert.equal(signal.aborted, true)
  })

  it('frees the address, which only one server can have', async () => {
    const { address } = fixture.server
    await assert.rejects(fixture.listener.listen(address, () => {}), new RegExp(`${address.port} cannot be bound`))
    await fixture.server.close(0)
    const again = await fixture.listener.listen(address, () => {})
    await again.close(0)
  })
}
