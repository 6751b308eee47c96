/** One complete node in this process, in simulated time, that generated requests are sent to. */
import { type InjectedRequest, type InjectedResponse, MemoryLog, ResponseCutError } from '@sectional/runtime'
import { MemoryCluster } from '../packages/server/test/memory-cluster.ts'

const authorization = `Basic ${Buffer.from('admin:password').toString('base64')}`
/** Simulated milliseconds in which a response must begin. The longest feed of these requests waits for 60 s. */
const headMsMax = 150_000
/** Simulated milliseconds after which the client closes the connection, because a feed need not end. */
const bodyMsMax = 20_000
const stepMsMax = 500

export interface FuzzRequest {
  readonly method: string
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
}

export interface FuzzAnswer {
  readonly status: number
  readonly headers: InjectedResponse['headers']
  readonly text: string
}

/** Chunks that are read of one response: feeds with heartbeats never end. */
const chunksMax = 200

type Runtime = Awaited<ReturnType<MemoryCluster['make']>>['runtime']

export class FuzzedNode {
  readonly #cluster: MemoryCluster
  readonly #node: { stop(): Promise<void> }
  readonly #runtime: Runtime

  private constructor(cluster: MemoryCluster, { node, runtime }: Awaited<ReturnType<MemoryCluster['make']>>) {
    this.#cluster = cluster
    this.#node = node
    this.#runtime = runtime
  }

  static async start(): Promise<FuzzedNode> {
    const cluster = new MemoryCluster(1)
    const life = await cluster.make(1)
    await cluster.finish(life.node.start())
    const node = new FuzzedNode(cluster, life)
    while ((await node.send({ method: 'GET', target: '/_up', headers: {} })).status !== 200) {
      await cluster.clock.advance(stepMsMax)
    }
    return node
  }

  /** Stops the node. @throws Error when something of it keeps running */
  async stop(): Promise<void> {
    await this.#cluster.finish(this.#node.stop())
    if (this.#cluster.clock.pendingTimers > 0) throw new Error('the stopped node has left timers behind')
  }

  /** Error lines of the log: failures inside the node, which no request may cause. */
  get errors(): readonly string[] {
    const { lines } = this.#runtime.log as MemoryLog
    return lines.filter(({ level }) => level === 'error').map(line => JSON.stringify(line, withStack))
  }

  /** Sends JSON as the administrator. @throws Error unless it succeeds */
  async prepare(method: string, target: string, json?: unknown): Promise<void> {
    const headers = { authorization, 'content-type': 'application/json' }
    const body = json === undefined ? {} : { body: JSON.stringify(json) }
    const answer = await this.send({ method, target, headers, ...body })
    if (answer.status >= 300) throw new Error(`${method} ${target}: ${answer.status} ${answer.text}`)
  }

  /**
   * Sends a request and reads its response, at most for some seconds of simulated time.
   * @throws Error when the response does not begin
   */
  async send(request: FuzzRequest): Promise<FuzzAnswer> {
    const injected: InjectedRequest = { ...request, headers: { host: 'node.example:5984', ...request.headers } }
    const response = await this.#within(this.#runtime.http.open(injected), headMsMax)
    if (response === undefined) throw new Error(`no response began within ${headMsMax / 1000} s of simulated time`)
    const chunks: Uint8Array[] = []
    const reading = response.chunks[Symbol.asyncIterator]()
    try {
      for (;;) {
        const step = await this.#within(reading.next(), bodyMsMax)
        if (step === undefined || step.done === true) break
        chunks.push(step.value)
        if (chunks.length > chunksMax) break
      }
    } catch (error) {
      if (!(error instanceof ResponseCutError)) throw error
    }
    void reading.return?.()
    await this.#cluster.clock.advance(0)
    return { status: response.status, headers: response.headers, text: Buffer.concat(chunks).toString() }
  }

  /** Advances the clock until the promise settles. Returns undefined when it does not within the time. */
  async #within<Result>(promise: Promise<Result>, ms: number): Promise<Result | undefined> {
    let settled = false
    const watched = promise.finally(() => { settled = true })
    watched.catch(() => {})
    for (let passed = 0, step = 1; !settled; passed += step, step = Math.min(step * 2, stepMsMax)) {
      if (passed > ms) return undefined
      await this.#cluster.clock.advance(step)
      // Work in threads, such as signatures, takes real time.
      if (!settled && step > 2) await new Promise(resolve => { setTimeout(resolve, 1) })
    }
    return watched
  }
}

function withStack(_name: string, value: unknown): unknown {
  return value instanceof Error ? value.stack : value
}
