/**
 * A load balancer like those that operators use: it sends each request to the next node that reports to be up, also
 * when requests share a connection.
 */
import {
  createServer, request, type ClientRequest, type IncomingMessage, type Server, type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { pipeline } from 'node:stream'
import { administrator, type TestNode } from './test-node.ts'

const checkIntervalMs = 200
/** The timeout is long, because a machine that runs a whole cluster and its clients is sometimes slow. */
const checkTimeoutMs = 5000
/** Headers that concern one connection and are not forwarded. */
const hopHeaders = new Set(['connection', 'keep-alive', 'transfer-encoding'])

export class Balancer {
  readonly #nodes: readonly TestNode[]
  readonly #up = new Set<TestNode>()
  /** Nodes that get no requests until they have been down once. */
  readonly #takenOut = new Set<TestNode>()
  /** Number of requests that each node has not answered yet. */
  readonly #underway = new Map<TestNode, number>()
  readonly #server: Server
  #checks: NodeJS.Timeout | undefined
  #next = 0
  #closed = false

  private constructor(nodes: readonly TestNode[]) {
    this.#nodes = nodes
    this.#server = createServer((incoming, outgoing) => this.#pass(incoming, outgoing, this.#nodes.length))
    // Long feeds and large uploads have no timeout here; the nodes limit them.
    this.#server.requestTimeout = 0
  }

  static async open(nodes: readonly TestNode[]): Promise<Balancer> {
    const balancer = new Balancer(nodes)
    await new Promise<void>((resolve, reject) => balancer.#server.once('error', reject).listen(0, '127.0.0.1', resolve))
    await balancer.#check()
    balancer.#checkSoon()
    return balancer
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** URL with the administrator's credentials, in the form that clients accept. */
  get url(): string {
    return `http://${administrator}@127.0.0.1:${this.port}`
  }

  /** Sends no more requests to the node until it has been down once. */
  takeOut(node: TestNode): void {
    this.#takenOut.add(node)
    this.#up.delete(node)
  }

  /** Returns whether a client waits for a response of the node, or for the rest of one. */
  isAnswering(node: TestNode): boolean {
    return (this.#underway.get(node) ?? 0) > 0
  }

  /** Returns whether the node gets no new requests and has answered all others, so that it may be stopped. */
  isDrained(node: TestNode): boolean {
    return !this.#up.has(node) && !this.isAnswering(node)
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#checks)
    this.#server.closeAllConnections()
    await new Promise(resolve => this.#server.close(resolve))
  }

  /** Schedules the next check after the last one has ended: a late answer must not override a more recent one. */
  #checkSoon(): void {
    this.#checks = setTimeout(
      () => void this.#check().then(() => { if (!this.#closed) this.#checkSoon() }), checkIntervalMs,
    )
  }

  async #check(): Promise<void> {
    await Promise.all(this.#nodes.map(async node => {
      const up = await node.http.send('GET', '/_up', { timeoutMs: checkTimeoutMs })
        .then(({ status }) => status === 200, () => false)
      if (!up) this.#takenOut.delete(node)
      if (up && !this.#takenOut.has(node)) this.#up.add(node)
      else this.#up.delete(node)
    }))
  }

  #count(node: TestNode, change: number): void {
    this.#underway.set(node, (this.#underway.get(node) ?? 0) + change)
  }

  #choose(): TestNode | undefined {
    for (let step = 0; step < this.#nodes.length; step++) {
      const node = this.#nodes[this.#next++ % this.#nodes.length]!
      if (this.#up.has(node)) return node
    }
    return undefined
  }

  /**
   * Forwards a request. When a node refuses the connection it has seen nothing of the request, so the next node gets
   * it.
   */
  #pass(incoming: IncomingMessage, outgoing: ServerResponse, attempts: number): void {
    const node = attempts > 0 ? this.#choose() : undefined
    if (node === undefined) return void outgoing.writeHead(503).end()
    let connected = false
    const { method, url } = incoming
    this.#count(node, 1)
    const forwarded = request({
      host: '127.0.0.1', port: node.http.port, method, path: url, headers: endToEnd(incoming), agent: false,
    })
    forwarded.on('socket', socket => socket.once('connect', () => {
      connected = true
      pipeline(incoming, forwarded, () => undefined)
    }))
    forwarded.on('response', answer => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.statusMessage, endToEnd(answer))
      outgoing.flushHeaders()
      pipeline(answer, outgoing, () => undefined)
    })
    forwarded.on('close', () => this.#count(node, -1))
    forwarded.on('error', () => {
      if (!connected) {
        this.#up.delete(node)
        return this.#pass(incoming, outgoing, attempts - 1)
      }
      fail(outgoing)
    })
    outgoing.on('close', () => abandon(forwarded, outgoing))
  }
}

/** Reports that the node was lost during the request. */
function fail(outgoing: ServerResponse): void {
  if (outgoing.headersSent) outgoing.destroy()
  else outgoing.writeHead(502).end()
}

/** Ends the request to the node when its client has disconnected. */
function abandon(forwarded: ClientRequest, outgoing: ServerResponse): void {
  if (!outgoing.writableFinished) forwarded.destroy()
}

function endToEnd({ headers }: IncomingMessage): Record<string, string | string[]> {
  return Object.fromEntries(Object.entries(headers)
    .filter((entry): entry is [string, string | string[]] => entry[1] !== undefined && !hopHeaders.has(entry[0])))
}
