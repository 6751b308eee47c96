import { sleep, type Clock } from '../clock/clock.ts'
import { HttpFetchError, type HttpClient, type HttpFetched, type HttpFetchLimits } from './http-client.ts'

/** The answer of a server; undefined: the server never answers. */
export type MemoryAnswer = { readonly status: number; readonly body: string } | undefined

/** A web inside the process: tests say how each URL is answered. */
export class MemoryHttpClient implements HttpClient {
  readonly #clock: Clock
  /** The server of each URL. Other URLs refuse connections. */
  readonly servers = new Map<string, () => MemoryAnswer>()
  /** The URLs of all requests, in their order. */
  readonly requests: string[] = []

  constructor(clock: Clock) {
    this.#clock = clock
  }

  async get(url: string, { timeoutMs, bytesMax }: HttpFetchLimits): Promise<HttpFetched> {
    this.requests.push(url)
    const server = this.servers.get(url)
    if (server === undefined) throw new HttpFetchError('ECONNREFUSED')
    const answer = server()
    if (answer === undefined) {
      await sleep(this.#clock, timeoutMs)
      throw new HttpFetchError(`no answer after ${timeoutMs} ms`)
    }
    const body = Buffer.from(answer.body)
    if (body.length > bytesMax) throw new HttpFetchError(`the answer has more than ${bytesMax} bytes`)
    return { status: answer.status, body }
  }
}
