import { get as getPlain, type IncomingMessage, type RequestOptions } from 'node:http'
import { get as getEncrypted } from 'node:https'
import { HttpFetchError, type HttpClient, type HttpFetched, type HttpFetchLimits } from './http-client.ts'

/** Limit for the status line and the headers of an answer. */
const headerBytesMax = 16 * 1024

/** HTTP/1.1 with node:http. Each request has a connection of its own. */
export class NodeHttpClient implements HttpClient {
  readonly #revoked = new AbortController()

  async get(url: string, { timeoutMs, bytesMax }: HttpFetchLimits): Promise<HttpFetched> {
    const signal = AbortSignal.any([this.#revoked.signal, AbortSignal.timeout(timeoutMs)])
    try {
      const answer = await open(new URL(url), signal)
      return { status: answer.statusCode!, body: await readAnswer(answer, bytesMax) }
    } catch (error) {
      if (error instanceof HttpFetchError) throw error
      const isLate = signal.aborted && !this.#revoked.signal.aborted
      throw new HttpFetchError(isLate ? `no answer after ${timeoutMs} ms` : causeOf(error), { cause: error })
    }
  }

  /** Ends all requests at once. */
  revoke(): void {
    this.#revoked.abort()
  }
}

function open(url: URL, signal: AbortSignal): Promise<IncomingMessage> {
  const options: RequestOptions = {
    agent: false, signal, maxHeaderSize: headerBytesMax,
    headers: { 'Accept': 'application/json', 'Accept-Encoding': 'identity' },
  }
  return new Promise((resolve, reject) => {
    const get = url.protocol === 'https:' ? getEncrypted : getPlain
    const request = get(url, options, resolve).on('error', reject)
    // Node reports no error when the server changes to another protocol.
    request.once('close', () => { reject(new HttpFetchError('the connection closed without an answer')) })
  })
}

async function readAnswer(answer: IncomingMessage, bytesMax: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of answer as AsyncIterable<Uint8Array>) {
    bytes += chunk.length
    if (bytes > bytesMax) throw new HttpFetchError(`the answer has more than ${bytesMax} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function causeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? (error as Error).message
}
