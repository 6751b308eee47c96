/**
 * A load balancer as operators put one in front: each request to the next node that says it is up, whatever connection
 * it came by.
 */
import {
  createServer, request, type ClientRequest, type IncomingMessage, type Server, type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { pipeline } from 'node:stream'
import { administrator, type TestNode } from './test-node.ts'

const checkIntervalMs = 200
/** Long: a machine that runs a whole cluster and its clients has slow moments. */
const checkTimeoutMs = 5000
/** Those of one connection, which the next hop must not see. */
const hopHeaders = new Set(['connection', 'keep-alive', 'transfer-encoding'])

export class Balancer {
  readonly #nodes: readonly TestNode[]
  readonly #up = new Set<TestNode>()
  /** They get nothing until they have been down. */
  readonly #takenOut = new Set<TestNode>()
  /** Requests that a node has not answered yet. */
  readonly #underway = new Map<TestNode, number>()
  readonly #server: Server
  #checks: NodeJS.Timeout | undefined
  #next = 0
  #closed = false

  private constructor(nodes: readonly TestNode[]) {
    this.#nodes = nodes
    this.#server = createServer((incoming, outgoing) => this.#pass(incoming, outgoing, this.#nodes.length))
    // Long feeds and large uploads are the nodes' affair.
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

  /** With the administrator's credentials, as clients take it. */
  get url(): string {
    return `http://${administrator}@127.0.0.1:${this.port}`
  }

  /** The node gets no more requests until it has been down. */
  takeOut(node: TestNode): void {
    this.#takenOut.add(node)
    this.#up.delete(node)
  }

  /** Whether a client waits for an answer of the node, or for the rest of one. */
  isAnswering(node: TestNode): boolean {
    return (this.#underway.get(node) ?? 0) > 0
  }

  /** Whether the node gets no requests, and has none any more: it may be stopped. */
  isDrained(node: TestNode): boolean {
    return !this.#up.has(node) && !this.isAnswering(node)
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#checks)
    this.#server.closeAllConnections()
    await new Promise(resolve => this.#server.close(resolve))
  }

  /** One after the other: a slow answer of before must not count for more than one that came since. */
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

  /** A node that refuses the connection has seen nothing of the request: the next one may have it. */
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

/** The node was lost with the request in flight. */
function fail(outgoing: ServerResponse): void {
  if (outgoing.headersSent) outgoing.destroy()
  else outgoing.writeHead(502).end()
}

/** The client has gone: so does its request to the node. */
function abandon(forwarded: ClientRequest, outgoing: ServerResponse): void {
  if (!outgoing.writableFinished) forwarded.destroy()
}

function endToEnd({ headers }: IncomingMessage): Record<string, string | string[]> {
  return Object.fromEntries(Object.entries(headers)
    .filter((entry): entry is [string, string | string[]] => entry[1] !== undefined && !hopHeaders.has(entry[0])))
}
