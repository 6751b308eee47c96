/** A minimal client for tests: it sends JSON and returns the status and parsed JSON. */
import { Agent, request } from 'node:http'
import { Agent as TlsAgent, request as tlsRequest } from 'node:https'

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** Parsed JSON, or the text when it is none. */
  readonly body: any
}

export interface RequestOptions {
  readonly json?: unknown
  /** Credentials `name:password`; null: anonymous. */
  readonly auth?: string | null
  readonly timeoutMs?: number
}

export interface ClientOptions {
  /** Default: 127.0.0.1 */
  readonly host?: string
  /** Default: 64 */
  readonly socketsMax?: number
  /** Certificates in PEM format, of which one has signed that of the server; absent: no TLS. */
  readonly authorities?: readonly string[]
}

const timeoutMsDefault = 30_000

export class HttpClient {
  readonly #agent: Agent
  readonly #request: typeof request
  readonly port: number
  readonly #host: string
  readonly #auth: string

  /** @param auth `name:password` */
  constructor(port: number, auth: string, { host = '127.0.0.1', socketsMax = 64, authorities }: ClientOptions = {}) {
    this.port = port
    this.#host = host
    this.#auth = auth
    const options = { keepAlive: true, maxSockets: socketsMax }
    this.#agent = authorities === undefined ? new Agent(options) : new TlsAgent({ ...options, ca: [...authorities] })
    this.#request = authorities === undefined ? request : tlsRequest
  }

  get url(): string {
    return `http://${this.#auth}@${this.#host}:${this.port}`
  }

  /** Rejects when there is no complete response: the connection broke, or the timeout expired. */
  send(method: string, path: string, options: RequestOptions = {}): Promise<Answer> {
    const body = options.json === undefined ? undefined : JSON.stringify(options.json)
    const headers: Record<string, string> = { accept: 'application/json' }
    if (body !== undefined) headers['content-type'] = 'application/json'
    const auth = options.auth === undefined ? this.#auth : options.auth
    if (auth !== null) headers.authorization = `Basic ${Buffer.from(auth).toString('base64')}`
    return new Promise((resolve, reject) => {
      const target = { host: this.#host, port: this.port, method, path }
      const outgoing = this.#request({ ...target, headers, agent: this.#agent }, incoming => {
        const chunks: Buffer[] = []
        incoming.on('data', chunk => chunks.push(chunk))
        incoming.on('error', reject)
        incoming.on('end', () => {
          if (!incoming.complete) return reject(new Error(`${method} ${path}: the answer was cut off`))
          resolve({
            status: incoming.statusCode ?? 0, headers: incoming.headers, body: parse(Buffer.concat(chunks).toString()),
          })
        })
      })
      outgoing.setTimeout(
        options.timeoutMs ?? timeoutMsDefault,
        () => outgoing.destroy(new Error(`${method} ${path}: no answer in time`)),
      )
      outgoing.on('error', reject)
      outgoing.end(body)
    })
  }

  close(): void {
    this.#agent.destroy()
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
