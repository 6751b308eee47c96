/** The tests that every `HttpClient` must pass; each implementation runs them under mocha. */
import assert from 'node:assert/strict'
import type { MemoryAnswer } from './http-client-memory.ts'
import { HttpFetchError, type HttpClient } from './http-client.ts'

export interface HttpClientSuiteOptions {
  readonly create: () => Promise<HttpClient>
  /** Starts a server that gives this answer to each request; returns its URL. A redirect leads to another server. */
  readonly serve: (client: HttpClient, answer: MemoryAnswer) => Promise<string>
  /** Returns a URL where nobody listens. */
  readonly unused: () => Promise<string>
  /** Ends the client and the servers. */
  readonly destroy: (client: HttpClient) => Promise<void>
}

const limits = { timeoutMs: 5000, bytesMax: 1000 }

export function httpClientSuite(name: string, { create, serve, unused, destroy }: HttpClientSuiteOptions): void {
  describe(`${name} as an HTTP client`, () => {
    let client: HttpClient
    beforeEach(async () => { client = await create() })
    afterEach(() => destroy(client))

    const failure = async (get: Promise<unknown>): Promise<string> => {
      const error: unknown = await get.then(() => undefined, (thrown: unknown) => thrown)
      assert(error instanceof HttpFetchError)
      return error.message
    }

    it('returns the status and the body, whatever the status is', async () => {
      for (const status of [200, 404, 500]) {
        const url = await serve(client, { status, body: `${status} ✓` })
        const { status: came, body } = await client.get(url, limits)
        assert.deepEqual([came, Buffer.from(body).toString()], [status, `${status} ✓`])
      }
    })

    it('does not follow redirects', async () => {
      const url = await serve(client, { status: 302, body: 'elsewhere' })
      const { status, body } = await client.get(url, limits)
      assert.deepEqual([status, Buffer.from(body).toString()], [302, 'elsewhere'])
    })

    it('takes a body up to the limit', async () => {
      const url = await serve(client, { status: 200, body: 'x'.repeat(1000) })
      assert.equal((await client.get(url, limits)).body.length, 1000)
      assert.match(await failure(client.get(url, { ...limits, bytesMax: 999 })), /more than 999 bytes/)
    })

    it('fails when there is no answer in time', async () => {
      const url = await serve(client, undefined)
      assert.equal(await failure(client.get(url, { ...limits, timeoutMs: 50 })), 'no answer after 50 ms')
    })

    it('fails when nobody listens', async () => {
      assert.equal(await failure(client.get(await unused(), limits)), 'ECONNREFUSED')
    })
  })
}
